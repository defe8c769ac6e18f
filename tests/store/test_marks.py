"""Runs of one label are told apart in the same way wherever they are shown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_results import SMALL, change_experiment, small, write_results

from cwbench import sequences
from cwbench.cli import main
from cwbench.reports import build
from cwbench.reports.analysis.setups import all_settings
from cwbench.reports.analysis.study import Options
from cwbench.sharing.export import export
from cwbench.spec.segment import digest


def shown(results: Path, capsys: Any) -> tuple[set[str], set[str], set[str]]:
    """Sequences with settings: of `status --runs`, of the files for rliable, of a report."""
    main(["status", str(results), "--runs"])
    rows = [line.split(" paper ")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    files = {
        f"{file.stem.removeprefix('rliable-').removesuffix('-paper')} {label}"
        for file in export(results, "rliable")
        for label in np.load(file)
    }
    settings = all_settings(build.read(results).groups)
    reported = {f"{group.sequence} {one.title}" for one in settings for group in one.groups}
    return {" ".join(row.split()) for row in rows}, files, reported


def test_versions_and_settings_have_one_mark_everywhere(tmp_path: Path, capsys: Any) -> None:
    """Two versions, of which the new one has two batch sizes, and one method alone."""
    old, new = (small("Drift", source=code) for code in ("1a2b3c4d5e6f", "9f8e7d6c5b4a"))
    longer = small("Drift", source=new.source, schedule=SMALL | {"batch_size": 77})
    settings = [old, new, longer, small("Other")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1])
    starts = [digest(one.setup.record())[:4] for one in (new, longer)]
    expected = {"cw3-1 Drift (1a2b)", *(f"cw3-1 Drift (9f8e) ({start})" for start in starts)}
    assert shown(tmp_path, capsys) == (expected | {"cw3-1 Other"},) * 3


def test_sequences_with_other_tasks_have_one_name_everywhere(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = [sequences.get(name).tasks for name in ("cw3-1", "cw3-2")]
    for tasks in lists:
        edited = sequences.Sequence("mine", tasks)
        monkeypatch.setattr(sequences, "get", lambda name, edited=edited: edited)
        asked: Any = {"sequence_names": ["mine"], "settings": [small("Other")], "name": tasks[0]}
        write_results(tmp_path, seeds=[0], **asked)
    expected = {f"mine+{digest(tasks)[:4]} Other" for tasks in lists}
    assert shown(tmp_path, capsys) == (expected,) * 3


def relabel(record: dict[str, Any], label: str, created: int) -> None:
    runs = [run | {"label": label} for run in record["runs"]]
    record |= {"runs": runs, "created": created}


def test_a_setup_has_the_newest_label_everywhere(tmp_path: Path, capsys: Any) -> None:
    """An older version named fewer options."""
    for number, label in enumerate(("Other", "Other (width=64)")):
        asked: Any = {"sequence_names": ["cw3-1"], "settings": [small("Other")]}
        write_results(tmp_path, seeds=[number], name=label, **asked)
        for file in list(tmp_path.glob("experiments/*.json")):
            if json.loads(file.read_text())["name"] == label:
                change_experiment(file, lambda record: relabel(record, label, number))  # noqa: B023
    assert shown(tmp_path, capsys) == ({"cw3-1 Other (width=64)"},) * 3
    options = Options(methods=("other (width=64)",))
    assert len(build.read(tmp_path, options).groups[0].runs) == 2

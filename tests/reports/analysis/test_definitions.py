"""Sequences that define their tasks share tables, unless one name stands for different tasks."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_results import small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis.definitions import definitions, env_options
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Group, Study
from cwbench.reports.board.site import Entry, render
from cwbench.spec.config import GymnasiumConfig, MetaWorldConfig, PointMassConfig
from cwbench.spec.tasks import Task

ONE, TWO = "push,hammer", "hammer,faucet-close"
ALONE = ["single-push", "single-hammer", "single-faucet-close"]


def env_of(sequence: str, gravity: float = 9.8, size: int = 3) -> Any:
    """What a gymnasium sequence of these tasks records; `gravity` is hammer's."""
    kwargs = {"hammer": {"g": gravity}}
    tasks = tuple(
        Task(name, "Pendulum-v1", kwargs=kwargs.get(name, {}), horizon=200, obs_size=3)
        for name in sequences.get(sequence).tasks
    )
    return GymnasiumConfig(horizon=200, obs_size=size, action_size=1, tasks=tasks)


def write(root: Path, *methods: str, on: str, name: str = "", **env: Any) -> None:
    """Two seeds of each method on a sequence."""
    settings = [small(method, env=env_of(on, **env)) for method in methods]
    write_results(root, sequence_names=[on], settings=settings, name=f"{on}{name}", seeds=range(2))


def transfer(study: Study, method: str, *names: str) -> float:
    groups = [g for g in groups_of(study, method) if g.sequence in names]
    assert len(groups) == len(names)
    return Scores(study, groups[0].protocol).score(groups, "forward_transfer").value


def groups_of(study: Study, method: str) -> list[Group]:
    return [g for g in study.groups if g.method == method and g.family != "single"]


def test_two_sequences_share_a_protocol_and_a_mean(tmp_path: Path) -> None:
    """The transfer on each is the one it has without the other."""
    for folder, wanted in (("both", [ONE, TWO]), ("one", [ONE]), ("two", [TWO])):
        for sequence in wanted:
            write(tmp_path / folder, "ewc", "recall", on=sequence)
        for single in ALONE:
            write(tmp_path / folder, "finetuning", on=single)
    both, *others = (build.read(tmp_path / name) for name in ("both", "one", "two"))
    [protocol] = both.protocols
    assert protocol.env == {"suite": "gymnasium"} and both.problems == []
    assert len({g.setup for g in groups_of(both, "ewc")}) == 1
    values = [transfer(both, "ewc", name) for name in ("push-hammer", "hammer-faucet-close")]
    apart = [transfer(study, "ewc", groups_of(study, "ewc")[0].sequence) for study in others]
    assert values == apart and np.isfinite(values).all()
    mean = transfer(both, "ewc", "push-hammer", "hammer-faucet-close")
    assert mean == pytest.approx(np.mean(values))


def test_a_file_with_one_task_is_no_sequence_of_the_tables(tmp_path: Path) -> None:
    """Whatever its name, it is a reference."""
    write(tmp_path, "ewc", on=ONE)
    write(tmp_path, "finetuning", on="push")
    study = build.read(tmp_path)
    assert {g.sequence: g.family for g in study.groups} == {
        "push-hammer": "other", study.groups[-1].sequence: "single"
    }  # fmt: skip


@pytest.mark.parametrize("change", [{"gravity": 1.6}, {"size": 5}])
def test_tasks_of_one_name_that_differ_are_in_no_mean(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    """Another task, or the same one padded: what is trained alone is no reference of both."""
    write(tmp_path, "ewc", on=ONE)
    write(tmp_path, "ewc", on=TWO, **change)
    for single in ALONE:
        write(tmp_path, "finetuning", on=single)
    study = build.read(tmp_path)
    [note] = study.notes
    assert note.startswith("hammer") and "tasks of one name that are defined, or padded" in note
    assert note in study.problems
    found = {group.sequence: group for group in groups_of(study, "ewc")}
    one, two = found["push-hammer"], found["hammer-faucet-close"]
    assert one.protocol.key != two.protocol.key and one.setup != two.setup
    assert np.isfinite(transfer(study, "ewc", one.sequence))
    assert np.isnan(transfer(study, "ewc", two.sequence))
    why = Scores(study, two.protocol).score([two], "forward_transfer").why
    assert ("observations of size 3, padded to 5" in why) == ("size" in change)


def test_an_edited_sequence_is_not_averaged_with_its_old_self(tmp_path: Path) -> None:
    write(tmp_path, "ewc", on=ONE)
    write(tmp_path, "ewc", on=ONE, gravity=1.6, name=" again")
    study = build.read(tmp_path)
    assert [len(group.runs) for group in study.groups] == [2, 2] and len(study.protocols) == 2
    assert len(study.notes) == 1
    for protocol in study.protocols:  # as in the names of its files
        assert study.title(protocol).endswith(f", push-hammer ({study.slug(protocol)[-6:]})")


def test_contributions_with_other_tasks_of_one_name_are_separate_tables(tmp_path: Path) -> None:
    entries = []
    for name, gravity in (("a", 9.8), ("b", 1.6), ("c", 9.8)):
        write(tmp_path / name, "ewc", on=ONE, gravity=gravity)
        entries.append(Entry(name, name, build.read(tmp_path / name)))
    tables = re.findall("<tbody>.*?</tbody>", render(entries))
    assert sorted(table.count("<tr>") for table in tables) == [1, 2]


def test_other_suites_have_no_definitions() -> None:
    """So their keys stay what they are."""
    for config in (MetaWorldConfig(), PointMassConfig()):
        assert env_options(config.record()) == config.record()
        assert definitions(config.record()) == {}
    assert definitions({"tasks": "damaged"}) == {}

"""Looking after a results folder: `cwbench status`, `retry`, `clean`."""

import io
import json
import os
import platform
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench.cli import main
from cwbench.reports import build
from cwbench.reports.tables.verify import sign
from cwbench.spec.segment import digest
from cwbench.store import checkpoint
from cwbench.store.claims import Claims
from cwbench.store.cleanup import OLD_SECONDS, leftovers
from cwbench.store.results import SegmentFolder, load_runs
from cwbench.store.status import read_status

TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")


def states(root: Path) -> list[str]:
    [experiment], problems = read_status(root)
    assert not problems
    return [segment.state for segment in experiment.segments]


def test_status_of_an_interrupted_run(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path, seeds=(0, 1), stop_after=12)  # in the second of three tasks
    assert states(tmp_path) == ["done", "stopped", "waiting"] * 2
    [experiment], _ = read_status(tmp_path)
    last = experiment.segments[2]
    assert last.waits_for == experiment.segments[1].id and last.task == TASKS[2]
    assert experiment.counts["stopped"] == 2 and experiment.steps == 2 * 3 * 60
    assert 60 < experiment.step / 2 < 120
    toy_run(tmp_path, seeds=(0, 1))
    assert states(tmp_path) == ["done"] * 6


def test_status_of_a_failed_run(toy_run: Any, tmp_path: Path, capsys: Any) -> None:
    toy_run(tmp_path, tasks=("reach-0-1", "reach-2-x", "reach-4-1"))
    capsys.readouterr()
    assert states(tmp_path) == ["done", "failed", "waiting"]
    main(["status", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "could not convert string to float" in shown
    assert "reach-4-1" not in shown  # waiting ones are counted, not listed
    main(["status", str(tmp_path), "--all"])
    assert "finetuning-3-reach-4-1" in capsys.readouterr().out
    main(["status", str(tmp_path), "--runs"])
    assert "1/3" in capsys.readouterr().out


def test_status_says_where_and_how_fast(toy_run: Any, tmp_path: Path, capsys: Any) -> None:
    """A claim with a living owner means running; the same state without one means stopped."""
    store, plan, _ = toy_run(tmp_path, stop_after=12)
    folder = store.folder(plan.segments[1])
    with Claims() as claims:
        assert claims.take(folder)
        folder.set_status("running", step=50, started=time.time() - 20, started_step=10)
        capsys.readouterr()
        main(["status", str(tmp_path), "--json"])
        found = json.loads(capsys.readouterr().out)
        segment = found["segments"][1]
        assert segment["state"] == "running" and segment["folder"] == folder.path.name
        assert segment["owner"] == f"{platform.node()}:{os.getpid()}"
        assert segment["steps_per_second"] == pytest.approx(2, rel=0.05)  # 40 steps in 20 s
        assert found["experiments"][0]["counts"]["running"] == 1
        main(["status", str(tmp_path)])
        assert f"on {platform.node()}:{os.getpid()} since 20" in capsys.readouterr().out
    assert folder.state == "running" and states(tmp_path) == ["done", "stopped", "waiting"]


def tables(root: Path) -> list[str]:
    study = build.read(root)
    made = [
        sign(scores, table, "markdown", "percentile")
        for name in build.table_names(study)
        for _, scores, table in build.tables_of(study, name)
    ]
    assert len(made) > 3
    return made


def test_clean_keeps_everything_a_report_needs(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", seeds=(0, 1))
    before, runs = tables(tmp_path), load_runs(tmp_path)
    replay = [store.folder(segment).replay for segment in plan.segments]
    size = sum(file.stat().st_size for folder in replay for file in folder.iterdir())
    found, _ = leftovers(tmp_path)
    assert sorted(item.path for item in found) == sorted(replay)
    assert sum(item.bytes for item in found) == size
    main(["clean", str(tmp_path), "--dry-run"])
    assert all(folder.exists() for folder in replay)
    main(["clean", str(tmp_path), "--yes"])
    assert not any(folder.exists() for folder in replay)
    assert all(store.folder(segment).end.exists() for segment in plan.segments)
    assert tables(tmp_path) == before and load_runs(tmp_path).evals.equals(runs.evals)
    capsys.readouterr()
    main(["clean", str(tmp_path)])
    assert "nothing to remove" in capsys.readouterr().out
    # A longer sequence cannot go on without the data, and says so before it trains.
    _, longer, outcome = toy_run(tmp_path, "perfect-memory", tasks=(*TASKS, "reach-1-1"))
    assert longer.missing == 1 and outcome.trained == 0
    [message] = outcome.failed.values()
    assert "`cwbench clean`" in message


def old(file: Path, content: str = "x") -> Path:
    file.write_text(content)
    moment = time.time() - 2 * OLD_SECONDS
    os.utime(file, (moment, moment))
    return file


@pytest.mark.parametrize("name", ["recall", "perfect-memory"])
def test_an_unfinished_run_continues_after_clean(name: str, toy_run: Any, tmp_path: Path) -> None:
    """Stopped in the last task, so that it needs two replay memories and a snapshot."""
    whole, plan, _ = toy_run(tmp_path / "whole", name)
    parts, _, outcome = toy_run(tmp_path / "parts", name, stop_after=22, snapshot_seconds=0)
    assert outcome.interrupted and states(tmp_path / "parts") == ["done", "done", "stopped"]
    first, last = (parts.folder(plan.segments[place]) for place in (0, -1))
    rubbish = {
        old(first.path / ".status.json.99999"),
        old(last.snapshot.parent / ".state.safetensors.99999"),
        old(last.snapshot.parent / "replay-2-999999.npy"),
        old(last.path / "claim.json", json.dumps({"token": "", "host": "gone", "pid": 1})),
        old(tmp_path / "parts" / "experiments" / ".x.json.99999"),
    }
    shutil.copytree(last.snapshot.parent, first.snapshot.parent)  # died just before removing it
    found, _ = leftovers(tmp_path / "parts")
    assert {item.path for item in found} == rubbish | {first.snapshot.parent}
    main(["clean", str(tmp_path / "parts"), "--yes"])
    assert not any(path.exists() for path in rubbish)
    toy_run(tmp_path / "parts", name)
    for folders in ([store.folder(s) for store in (whole, parts)] for s in plan.segments):
        one, other = (checkpoint.load(folder.end)[0] for folder in folders)
        assert all(torch.equal(one[key], other[key]) for key in one)
        one, other = ((folder.path / "evals.csv").read_text() for folder in folders)
        assert one == other
    # Now that nothing is left to train, the memories may go.
    found, _ = leftovers(tmp_path / "parts")
    assert {item.path.name for item in found} == {"replay"} and len(found) == 3


def test_clean_leaves_a_working_process_alone(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    folder = store.folder(plan.segments[0])
    assert len(leftovers(tmp_path)[0]) == 1
    (folder.path / "claim.json").write_text(
        json.dumps({"token": "x", "host": "elsewhere", "pid": 1})
    )
    assert leftovers(tmp_path) == ([], [])


def test_clean_refuses_when_a_record_cannot_be_read(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    (tmp_path / "experiments" / "other.json").write_text("{")
    with pytest.raises(SystemExit) as exit_code:
        main(["clean", str(tmp_path), "--yes"])
    assert exit_code.value.code == 1
    assert "other.json" in capsys.readouterr().err
    assert store.folder(plan.segments[0]).replay.exists()


def test_clean_asks(toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody there to say yes
    with pytest.raises(SystemExit):
        main(["clean", str(tmp_path)])
    assert store.folder(plan.segments[0]).replay.exists()


def test_retry_trains_what_failed_and_what_waits_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real tasks: one run's second segment is broken by hand, the third of both not there yet."""
    root, quiet = tmp_path / "results", ["--threads", "1", "--quiet", "--no-live"]
    run = "run --method l2 --seq push,window-close,push --seeds 0-1 --protocol smoke"
    run += " --steps-per-task 120 --eval-every 120"
    main([*run.split(), "--results", str(root), *quiet])
    before = load_runs(root)
    folders = [[root / "segments" / name for name in names] for names in before.runs["folders"]]
    broken = folders[0][1]
    shutil.rmtree(folders[0][2])
    shutil.rmtree(folders[1][2])
    (broken / "end.safetensors").unlink()
    SegmentFolder(broken).set_status("failed", message="out of memory")
    capsys.readouterr()
    for wrong, message in (("nothing", "no segment 'nothing'"), (folders[0][0].name, "is done, ")):
        with pytest.raises(SystemExit) as exit_code:
            main(["retry", str(root), wrong])
        assert exit_code.value.code == 2 and message in capsys.readouterr().err
    main(["retry", str(root), broken.name, "--dry-run"])
    assert "1 runs = 3 segments, 1 done, 2 to train" in capsys.readouterr().out
    main(["retry", str(root), "--dry-run"])
    assert "2 runs = 6 segments, 3 done, 3 to train" in capsys.readouterr().out
    assert states(root) == ["done", "failed", "waiting", "done", "done", "waiting"]
    main(["retry", str(root), *quiet])
    assert states(root) == ["done"] * 6 and load_runs(root).evals.equals(before.evals)
    assert len(list((root / "experiments").iterdir())) == 1  # a retry has no record of its own
    capsys.readouterr()
    main(["retry", str(root)])
    assert "nothing to retry" in capsys.readouterr().out


def test_retry_of_a_diverged_segment_must_be_asked_for_and_begins_anew(
    toy_run: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def execute(experiments: Any, *_: Any, **__: Any) -> int:
        asked.append(experiments["retry"])
        return 1

    monkeypatch.setattr("cwbench.cli.retry.execute", execute)
    store, plan, _ = toy_run(tmp_path, stop_after=12)
    folder = store.folder(plan.segments[1])
    folder.set_status("diverged", message="weights are not finite")
    main(["retry", str(tmp_path)])
    assert "nothing to retry" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["retry", str(tmp_path), plan.segments[1].id])
    assert "is diverged, not failed; give --diverged" in capsys.readouterr().err
    main(["retry", str(tmp_path), "--diverged", "--dry-run"])
    assert folder.state == "diverged" and folder.snapshot.exists()
    main(["retry", str(tmp_path), "--diverged"])
    assert folder.state == "pending" and not folder.snapshot.exists()
    assert asked == [list(plan.runs)] * 2


def test_retry_of_a_method_that_is_not_here(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-x",))
    files = [store.folder(plan.segments[0]).path / "segment.json", *tmp_path.glob("exp*/*")]
    setup = digest(plan.segments[0].setup.record())
    other = digest(replace(plan.segments[0].setup, method="Pull").record())
    for file in files:
        text = file.read_text().replace('"method": "finetuning"', '"method": "Pull"')
        file.write_text(text.replace(setup, other))
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_code:
        main(["retry", str(tmp_path)])
    assert exit_code.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "finetuning: unknown method 'Pull'" in line and "to train them: " in line


@pytest.mark.parametrize("command", ["status", "retry", "clean"])
def test_a_folder_that_is_not_there(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main([command, str(tmp_path / "nowhere")])
    assert exit_code.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "nowhere: no such folder" in line
    assert not list(tmp_path.iterdir())

"""`cwbench retry`: what failed, and what waits for it."""

import importlib
import json
import os
import platform
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from outcomes import states
from sample_results import change_experiment

import cwbench
from cwbench.cli import main
from cwbench.cli.retry import _rebuild_run, _reset
from cwbench.experiment.session import Session
from cwbench.fleet.claiming import Outcome
from cwbench.spec.errors import UserError
from cwbench.spec.segment import digest
from cwbench.store.claims import Claims
from cwbench.store.results import SegmentFolder
from cwbench.store.runs import load_runs

pytestmark = pytest.mark.commands


def test_retry_trains_what_failed_and_what_waits_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real tasks: one run's second segment is damaged, the third of both is not there yet."""
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
    assert "1 run = 3 segments, 1 done, 2 to train" in capsys.readouterr().out
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

    def execute(experiments: Any, _: Any, training: Any, **options: Any) -> int:
        asked.append(experiments["retry"])
        if not training.dry_run:
            options["also_record"]()
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
    with Claims() as other:  # that trains the rest of the fleet
        assert other.take(folder)
        main(["retry", str(tmp_path), "--diverged"])
        said = capsys.readouterr()
        assert "belongs to a running process" in said.err and "nothing to retry" in said.out
        with pytest.raises(SystemExit):
            main(["retry", str(tmp_path), "--diverged", plan.segments[1].id])
        assert f"belongs to process {platform.node()}:{os.getpid()}" in capsys.readouterr().err
        _reset({folder: "diverged"}, restart=True)
        assert folder.state == "diverged" and folder.snapshot.exists()
    main(["retry", str(tmp_path), "--diverged", "--dry-run"])
    assert folder.state == "diverged" and folder.snapshot.exists()
    main(["retry", str(tmp_path), "--diverged"])
    assert folder.state == "pending" and not folder.snapshot.exists()
    assert asked == [list(plan.runs)] * 2


def test_a_segment_that_was_finished_meanwhile_stays_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By another process, while the question was on the screen."""
    states = {"failed": "failed", "done": "failed", "diverged": "failed"}
    for name in states:
        (tmp_path / name).mkdir()
        SegmentFolder(tmp_path / name).set_status(name, step=7)
    _reset({SegmentFolder(tmp_path / name): state for name, state in states.items()}, restart=True)
    found = {name: SegmentFolder(tmp_path / name).status() for name in states}
    assert [(one["state"], one["step"]) for one in found.values()] == [
        ("pending", 0),
        ("done", 7),
        ("diverged", 7),
    ]
    assert capsys.readouterr().out.count("has changed since and is left out") == 2
    assert not list(tmp_path.glob("*/claim.json"))


def test_a_claim_that_was_never_written_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two were left empty by a full disk; the wait that tells is one for all."""
    clock, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    made = partial(Claims, clock=lambda: clock[0])
    monkeypatch.setattr("cwbench.store.claims.Claims", made)
    monkeypatch.setattr("time.sleep", sleep)
    folders = [SegmentFolder(tmp_path / name) for name in ("a", "b", "c")]
    for folder in folders:
        folder.path.mkdir()
        folder.set_status("failed", message="out of memory")
    for folder in folders[:2]:
        (folder.path / "claim.json").touch()
    _reset(dict.fromkeys(folders, "failed"), restart=False)
    assert [folder.state for folder in folders] == ["pending"] * 3 and len(slept) == 1
    assert not capsys.readouterr().out and not list(tmp_path.glob("*/claim.json"))


def test_the_plans_of_a_dry_run_are_one_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two failures under two protocols."""
    small = "--steps-per-task 120 --eval-every 120 --eval-episodes 1 --start-steps 60"
    small += " --update-after 60 --buffer-size 1000 --quiet --no-live"
    for protocol in ("smoke", "compact"):
        run = f"run --method finetuning --seq push --seeds 0 --protocol {protocol} {small}"
        main([*run.split(), "--results", str(tmp_path)])
    capsys.readouterr()
    main(["retry", str(tmp_path), "--dry-run", "--json"])
    assert json.loads(capsys.readouterr().out) == []
    for file in tmp_path.glob("segments/*/status.json"):
        SegmentFolder(file.parent).set_status("failed", message="out of memory")
    main(["retry", str(tmp_path), "--dry-run", "--json"])
    plans = json.loads(capsys.readouterr().out)
    assert {run["protocol"] for plan in plans for run in plan["runs"]} == {"smoke", "compact"}
    assert [(plan["segments"], plan["done"]) for plan in plans] == [(1, 0)] * 2


def ask_by_name(record: dict[str, Any]) -> None:
    """An experiment of one protocol, which has its own name."""
    record["command"] = f"cwbench run --method {record['name']}"
    for run in record["runs"]:
        run["protocol"] = record["name"]


def test_ctrl_c_ends_a_retry_and_names_the_command_that_continues(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of two protocols, of which the second has not begun."""
    store, plan, _ = toy_run(tmp_path, "finetuning", "l2", tasks=("reach-0-x",))
    for file in list((tmp_path / "experiments").iterdir()):
        change_experiment(file, ask_by_name)
    folders = [store.folder(segment) for segment in plan.segments]
    for folder in folders:
        folder.set_status("failed", message="out of memory")
    commands: list[str] = []

    def stopped(self: Session, *_: Any, **__: Any) -> Outcome:
        commands.append(self.command)
        return Outcome(interrupted=True)

    monkeypatch.setattr(Session, "train", stopped)
    with pytest.raises(SystemExit) as exit_code:
        main(["retry", str(tmp_path), "--quiet", "--no-live"])
    assert exit_code.value.code == 1
    assert sorted(folder.state for folder in folders) == ["failed", "pending"]
    assert [f"cwbench run --method {name}" for name in ("finetuning", "l2")].count(commands[0])
    assert len(commands) == 1


def test_what_a_retry_cannot_read_is_named(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-1",))
    status = store.folder(plan.segments[0]).path / "status.json"
    status.write_text("")
    main(["retry", str(tmp_path), "--dry-run"])
    said = capsys.readouterr()
    assert said.err == f"problem: {status.relative_to(tmp_path)}: empty\n"
    assert "nothing to retry" in said.out


def test_retry_of_a_method_that_is_not_here(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=("reach-0-x",))
    file = store.folder(plan.segments[0]).path / "segment.json"
    file.write_text(file.read_text().replace('"method": "finetuning"', '"method": "Pull"'))
    other = digest(replace(plan.segments[0].setup, method="Pull").record())
    [asked] = tmp_path.glob("experiments/*.json")
    change_experiment(asked, lambda one: one["runs"][0].update(method="Pull", setup=other))
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_code:
        main(["retry", str(tmp_path)])
    assert exit_code.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert (
        "finetuning: method 'Pull' is not installed; name it with --method FILE.py:Pull; a note"
        in line
    )
    assert "to train them: " in line


def test_of_an_edited_environment_retry_says_that_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that the method had changed."""
    own = tmp_path / f"own_{tmp_path.name}.py"
    own.write_text("from countdown import Countdown\nclass Own(Countdown):\n    later = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    task = cwbench.Task("own", importlib.import_module(own.stem).Own, horizon=10)
    plan = cwbench.plan("finetuning", [task], protocol="smoke", results=tmp_path / "results")
    [segment] = plan.runs[0].segments
    own.write_text(own.read_text().replace("1", "2"))
    monkeypatch.delitem(sys.modules, own.stem)
    run = {"tasks": ["own"], "seed": 0, "segments": [segment.id]}
    with pytest.raises(UserError, match=f"task own: {own.stem}:Own has changed since then"):
        _rebuild_run(run, segment.record(), {})

"""Looking after a results folder: `cwbench status`, `retry`, `clean`."""

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from outcomes import states
from sample_results import SMALL, Setting, small, write_results

import cwbench
from cwbench.cli import main
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.segment import digest
from cwbench.store.claims import Claims
from cwbench.store.results import SegmentFolder
from cwbench.store.status import read_status

TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")


def test_status_of_a_failed_run(toy_run: Any, tmp_path: Path, capsys: Any) -> None:
    toy_run(tmp_path, tasks=("reach-0-1", "reach-2-x", "reach-4-1"))
    capsys.readouterr()
    assert states(tmp_path) == ["done", "failed", "waiting"]
    main(["status", str(tmp_path)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "could not convert string to float" in shown
    assert "reach-4-1" not in shown  # waiting ones are counted, not listed
    main(["status", str(tmp_path), "--all"])
    assert "finetuning-3-reach-4-1" in capsys.readouterr().out
    main(["status", str(tmp_path), "--runs"])
    assert "1/3" in capsys.readouterr().out


BREAKS = """
from cwbench.learner import Method

class Breaks(Method):
    def after_update(self, batch, targets):
        if self.trainer.updates == 15:
            raise ZeroDivisionError("fifteen")
"""


def test_status_shows_a_failure_with_its_line_and_how_far_it_came(
    toy_run: Any, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    toy_run(tmp_path / "results", f"{tmp_path}/breaks.py:Breaks", tasks=TASKS[:1])
    [experiment], _ = read_status(tmp_path / "results")
    [segment] = experiment.segments
    assert segment.state == "failed" and segment.step == 31  # updates 11 to 20 follow this step
    assert segment.error is not None
    assert segment.error["type"] == "ZeroDivisionError" and segment.error["line"] == 7
    capsys.readouterr()
    main(["status", str(tmp_path / "results"), "--errors"])
    shown = capsys.readouterr().out
    assert "Traceback (most recent call last)" in shown
    assert 'breaks.py", line 7, in after_update' in shown


def run_states(results: Path, capsys: Any) -> list[str]:
    """Of runs, on the command line; Python's are the same."""
    capsys.readouterr()
    main(["status", str(results), "--runs", "--json"])
    found = [run["state"] for run in json.loads(capsys.readouterr().out)["runs"]]
    assert found == cwbench.load_runs(results).summary["state"].tolist()
    return found


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
        assert run_states(tmp_path, capsys) == ["running"]
        main(["status", str(tmp_path)])
        assert f"on {platform.node()}:{os.getpid()} since 20" in capsys.readouterr().out
        folder.set_status("running", retraining=[2500, 10_000])
        main(["status", str(tmp_path)])
        assert "at the task's end, 2,500 of 10,000 updates, on" in capsys.readouterr().out
    assert folder.state == "running" and states(tmp_path) == ["done", "stopped", "waiting"]
    assert run_states(tmp_path, capsys) == ["stopped"]
    folder.set_status("pending", step=0, message="stopped; starts its task again")
    assert states(tmp_path) == ["done", "stopped", "waiting"]
    main(["status", str(tmp_path)])
    assert "stopped  0/60   -        starts its task again\n" in capsys.readouterr().out


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


def test_brackets_in_a_message_are_shown_as_they_are(tmp_path: Path, capsys: Any) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[Setting("ewc")], seeds=[0])
    first = min(tmp_path.glob("segments/*"))
    SegmentFolder(first).set_status("failed", message="[/x] is no [bold]folder[/]")
    main(["status", str(tmp_path)])
    assert "[/x] is no [bold]folder[/]" in capsys.readouterr().out


def test_runs_for_programs_are_those_of_the_table(tmp_path: Path, capsys: Any) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    main(["status", str(tmp_path), "--runs"])
    _, *rows = capsys.readouterr().out.splitlines()
    main(["status", str(tmp_path), "--runs", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == [] and [run["seed"] for run in found["runs"]] == [0, 1]
    for row, run in zip(rows, found["runs"], strict=True):
        assert row.split()[:4] == ["cw3-1", "ewc", "paper", str(run["seed"])]
        assert row.split()[-1] == f"{run['success']:.2f}" and run["steps"] == 30_000
        assert run["done"] == len(run["segments"]) == 3


@pytest.mark.parametrize(("success", "rate"), [("any", 1.0), ("last", 0.5)])
def test_success_of_runs_is_counted_as_their_protocol_counts(
    success: Any, rate: float, tmp_path: Path, capsys: Any
) -> None:
    env = MetaWorldConfig(success=success)
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc", env=env)], seeds=[0])
    for file in tmp_path.glob("segments/*/evals.csv"):
        table = pd.read_csv(file)
        table.assign(successes=10, v3_last=5, v1_any=0, v1_last=0).to_csv(file, index=False)
    main(["status", str(tmp_path), "--runs", "--json"])
    [run] = json.loads(capsys.readouterr().out)["runs"]
    assert run["success"] == rate


@pytest.mark.parametrize("options", [[], ["--runs"]])
def test_problems_do_not_go_to_the_output(options: list[str], tmp_path: Path, capsys: Any) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    (tmp_path / "experiments" / "other.json").write_text("")
    main(["status", str(tmp_path), *options])
    output, errors = capsys.readouterr()
    assert "problem" not in output and errors == "problem: experiments/other.json: empty\n"


def test_work_of_status_grows_with_the_number_of_segments(tmp_path: Path, capsys: Any) -> None:
    """Calls of functions, which do not depend on how busy a machine is."""
    calls = []
    for number in (10, 20):
        root = tmp_path / str(number)
        write_results(
            root, sequence_names=["cw3-1"], settings=[Setting("ewc")], seeds=range(number)
        )
        for arguments in (["--runs"], []):
            main(["status", str(root), *arguments])  # imports are not counted
            events: list[str] = []
            sys.setprofile(lambda frame, event, argument: events.append(event))  # noqa: B023
            try:
                main(["status", str(root), *arguments])
            finally:
                sys.setprofile(None)
            calls.append(len(events))
    assert calls[2] < 2.2 * calls[0] and calls[3] < 2.2 * calls[1]


def test_runs_are_listed_in_the_order_of_their_seeds(tmp_path: Path, capsys: Any) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[10, 2])
    main(["status", str(tmp_path), "--runs"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "cw3-1" in line]
    assert [line[3] for line in lines] == ["2", "10"]


def test_settings_with_one_label_have_the_start_of_their_fingerprint(
    tmp_path: Path, capsys: Any
) -> None:
    """As in reports; what is the only one of its label has its label."""
    other = small("ewc", schedule=SMALL | {"start_steps": 77})
    settings = [small("ewc"), other, small("l2")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1])
    main(["status", str(tmp_path), "--runs"])
    lines = [line.split("paper")[0].split() for line in capsys.readouterr().out.splitlines()]
    found = {" ".join(line[1:]) for line in lines if line[0] == "cw3-1"}
    starts = [digest(setting.setup.record())[:4] for setting in settings[:2]]
    assert found == {*(f"ewc ({start})" for start in starts), "l2"}


def test_an_empty_folder_has_no_runs(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "segments").mkdir()
    main(["status", str(tmp_path), "--runs"])
    assert len(capsys.readouterr().out.splitlines()) == 1  # the heading

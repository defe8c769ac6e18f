"""`cwbench.plan` and `cwbench.train`: what the command line does, from Python."""

import copy
import json
import multiprocessing
import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import cwbench
from cwbench.cli import main
from cwbench.experiment import api
from cwbench.experiment.listener import Terminal
from cwbench.fleet.progress import Display
from cwbench.learner import Batch, Method

PINS = Path(__file__).parents[1] / "data" / "pinned_runs.json"
SMALL: dict[str, Any] = {"protocol": "smoke", "steps_per_task": 90, "eval_every": 45, "width": 8}
SMALL |= {"update_after": 20, "start_steps": 20, "workers": 1, "threads": 1}
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]


def test_segments_are_those_of_the_command_line() -> None:
    pinned = json.loads(PINS.read_text())["ids"]["recall"]
    for protocol in ("paper", "compact"):
        assert cwbench.plan("recall", "cw3-1", protocol=protocol).segments == pinned[protocol]
    other = cwbench.plan("recall", "cw3-1", protocol="compact", lambda_=5.0)
    assert not set(other.segments) & set(pinned["compact"])


@pytest.mark.usefixtures("without_compilers")
def test_a_plan_that_cannot_compile_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cwbench.plan("finetuning", "point3", results=tmp_path, device="cpu", compile=True, **SMALL)
    assert capsys.readouterr().out.startswith("updates are not compiled: no C++ compiler")


def test_python_and_the_command_line_share_results(tmp_path: Path) -> None:
    """What one has trained, the other finds done; trained by either, the numbers are equal."""
    by_command, by_call = tmp_path / "command", tmp_path / "call"
    run = ["run", "--method", "finetuning", "--seq", "point3", "--seeds", "0-1", "--quiet"]
    main([*run, *FLAGS, "--results", str(by_command), "--no-live"])
    plan = cwbench.plan("finetuning", "point3", seeds=range(2), results=by_command, **SMALL)
    assert plan.fleets.missing == 0 and "6 segments, 6 done, 0 to train" in repr(plan)
    found = cwbench.train(plan, quiet=True)
    trained = cwbench.train(
        cwbench.plan("finetuning", "point3", seeds=range(2), results=by_call, **SMALL), quiet=True
    )
    assert [run.state for run in trained] == ["done", "done"]
    assert trained.evaluations.equals(found.evaluations) and len(trained.evaluations) == 24
    assert [file.name for file in by_command.glob("experiments/*")] == [
        file.name for file in by_call.glob("experiments/*")
    ]


def test_a_plan_prints_what_it_takes_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = cwbench.plan("finetuning", "point3", seeds="0-4", device="cpu", **SMALL)
    main(["run", "--method=finetuning", "--seq=point3", "--seeds=0-4", *FLAGS, "--dry-run"])
    printed = capsys.readouterr().out.splitlines()
    # The last line is a measurement.
    assert repr(plan).splitlines()[1:-1] == printed[:-1] and len(printed) > 3
    title = "finetuning (width=8) on point3, protocol smoke"
    assert repr(plan).startswith(f"{title}\n5 runs = 15 segments")
    assert plan.estimate.steps == 5 * 3 * 90
    assert not list(tmp_path.iterdir())


def test_a_plan_can_be_copied(tmp_path: Path) -> None:
    plan = cwbench.plan("finetuning", "point3", results=tmp_path, device="cpu", **SMALL)
    assert "3 segments" in repr(plan)
    for made in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert made.segments == plan.segments and repr(made) == repr(plan)


class CtrlC(Display):
    """Sends this process a Ctrl-C after its first chunk."""

    def advance(self, fleet: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_pauses_and_the_same_call_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(folder: str) -> api.Plan:
        return cwbench.plan("finetuning", "point3", results=tmp_path / folder, **SMALL)

    whole = cwbench.train(plan("whole"), quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr(Terminal, "progress", lambda self, total_steps: CtrlC())
        with pytest.raises(KeyboardInterrupt):
            cwbench.train(plan("parts"))
    [paused] = cwbench.load_runs(tmp_path / "parts")
    assert paused.state == "stopped" and 0 < paused.step < paused.steps
    continued = cwbench.train(plan("parts"), quiet=True)
    assert continued.evaluations.equals(whole.evaluations)


class Broken(Method[Any]):
    """Fails in the middle of its second task."""

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        if self.trainer.position == 1 and self.trainer.updates > 20:
            raise ValueError("broken on purpose")


def test_failures_are_raised_and_listed(tmp_path: Path) -> None:
    plan = cwbench.plan(Broken, ["reach-0-1", "reach-2-1"], results=tmp_path, **SMALL)
    with pytest.raises(cwbench.TrainingError, match="broken on purpose") as error:
        cwbench.train(plan, quiet=True)
    first, *others = str(error.value).splitlines()
    assert first == "1 segment is not done"
    assert len(others) == 1 and others[0].startswith("Broken-2-reach-2-1-s0-")
    assert [(run.done, run.state) for run in error.value.runs] == [(1, "failed")]
    sent = pickle.loads(pickle.dumps(error.value))  # as from a process of a pool
    assert str(sent) == str(error.value) and list(sent.runs) == list(error.value.runs)
    assert cwbench.load_policy(error.value.runs[0]).task == "reach-0-1"  # knows its own class


def test_training_in_a_thread_is_refused(tmp_path: Path) -> None:
    plan = cwbench.plan("finetuning", "point3", results=tmp_path / "results", **SMALL)
    caught: list[BaseException] = []

    def call() -> None:
        try:
            cwbench.train(plan)
        except cwbench.UserError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    [error] = caught
    assert str(error) == "train was called in a thread; call it in the main thread, for Ctrl-C"
    assert not list(tmp_path.iterdir())


def test_training_in_a_daemonic_process_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a multiprocessing.Pool: Python lets it start no workers."""
    plan = cwbench.plan("finetuning", "point3", results=tmp_path / "results", **SMALL)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    with pytest.raises(cwbench.UserError, match=r"in a multiprocessing.Pool, .* use concurrent"):
        cwbench.train(plan)
    assert not list(tmp_path.iterdir())


def test_results_stay_where_they_were_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the folder of that name in the working directory of then, also for what is read later.

    A plan that is printed again knows what has been trained.
    """
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    plan = cwbench.plan("finetuning", ["reach-0-1"], results="runs", **SMALL)
    assert "1 segment, 0 done, 1 to train" in repr(plan)
    monkeypatch.chdir(tmp_path / "b")
    runs = cwbench.train(plan)
    assert capsys.readouterr().out.endswith(f"results are in {tmp_path / 'a' / 'runs'}\n")
    assert "1 segment, 1 done, 0 to train" in repr(plan)
    monkeypatch.chdir(tmp_path / "a")
    read = cwbench.load_runs("runs")
    cwbench.train(cwbench.plan("finetuning", ["reach-0-1"], seeds=1, results="runs", **SMALL))
    assert capsys.readouterr().out.endswith(f"results are in {tmp_path / 'a' / 'runs'}\n")
    monkeypatch.chdir(tmp_path)
    assert [cwbench.load_policy(run).task for run in (runs[0], read[0])] == ["reach-0-1"] * 2
    assert not list((tmp_path / "b").iterdir())
    assert not any(str(tmp_path) in file.read_text() for file in tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "finetunning"}, "unknown method 'finetunning'; did you mean 'finetuning'?"),
        ({"method": 3}, "3 is not a method; give a name or a subclass of cwbench.Method"),
        ({"sequence": "point33"}, "unknown sequence 'point33'; did you mean 'point3'?"),
        ({"sequence": ["push", "reach-0-1"]}, "all tasks must be of one suite"),
        ({"seeds": []}, "seeds is empty; give at least one"),
        ({"results": ""}, "the results folder's name is empty"),
        ({"seeds": [0, 0]}, "names seed 0 twice"),
        ({"seeds": -1}, "'-1' is not a list of seeds"),
        ({"seeds": 1.5}, "seeds=1.5: not a number or several"),
        ({"seeds": True}, "seeds=True: not a number or several"),
        ({"seeds": b"01"}, "seeds=b'01': not a number or several"),
        ({"seeds": torch.ones(9, 9)}, "not a number or several"),
        ({"hidden": {64, 32}}, "a set has no order; give a list"),
        ({"slurm_set": 3}, "--slurm-set: 3 is not a list of texts"),
        ({"slurm_set": [3]}, "--slurm-set: [3] is not a list of texts"),
        ({"activation": np.array(["relu", "tanh"])}, "['relu', 'tanh'] is not one of"),
        ({"sequence": 3}, "3 is not a sequence"),
        ({"hidden": ["a", 8]}, "--hidden a,8: not a list of numbers"),
        ({"results": 3}, "3 is not a results folder; give its path"),
        ({"unshared": 3}, "'3' is neither actor nor critic"),
        ({"steps_per_task": 1.5}, "1.5 is not a whole number"),
        ({"protocol": 3}, "unknown protocol '3'"),
        ({"protocol": ["smoke"]}, "unknown protocol"),
        ({"protocol": "papper"}, "unknown protocol 'papper'; did you mean 'paper'?"),
        ({"lamda": 3}, "finetuning has no option 'lamda'"),
        ({"method": "recall", "lamda": 3}, "recall has no option 'lamda'; did you mean 'lambda_'?"),
        ({"step_per_task": 3}, "no option 'step_per_task'; did you mean 'steps_per_task'?"),
        ({"lr": 0.1, "lr_": 0.2}, "option 'lr' is given twice; give it once"),
        ({"lr": "fast"}, "'fast' is not a number"),
        ({"workers": 0}, "0 is too small; the smallest value is 1"),
        ({"device": "tpu"}, "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
        ({"results": __file__}, "is a file, not a folder"),
    ],
)
def test_bad_input_is_one_line(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"method": "finetuning", "sequence": "point3", **arguments}
    with pytest.raises(cwbench.UserError) as error:
        cwbench.plan(**given)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_no_live_page_is_written_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It trains without one, as `cwbench run` does."""
    results, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    results.mkdir()
    elsewhere.mkdir()
    (results / "report").symlink_to(elsewhere)
    [run] = cwbench.train(
        cwbench.plan("finetuning", ["reach-0-1"], results=results, **SMALL), live=True
    )
    assert run.state == "done" and not any(elsewhere.iterdir())
    assert "no live page: " in capsys.readouterr().out


def test_only_a_plan_can_be_trained() -> None:
    with pytest.raises(cwbench.UserError, match="'recall' is not a plan"):
        cwbench.train("recall")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("natural", "written"),
    [
        ({"hidden": [64, 32]}, {"hidden": "64,32"}),
        ({"hidden": np.array([64, 32])}, {"hidden": "64,32"}),
        ({"log_std_range": (-20.0, 2)}, {}),
        ({"log_std_range": (-5, np.float32(0.5))}, {"log_std_range": "-5,0.5"}),
        ({"reset": ["actor", "critic"]}, {"reset": "actor,critic"}),
        ({"reset": ()}, {"reset": "none"}),
        ({"steps_per_task": 2e3}, {"steps_per_task": 2000}),
        ({"batch_size": np.int64(16)}, {"batch_size": 16}),
        ({"lr": np.float32(0.002)}, {"lr": 0.002}),
        ({"coef": np.float32(0.5), "workers": np.int64(1)}, {"coef": 0.5}),
        ({"steps-per-task": 2000, "lr_": 0.002}, {"steps_per_task": 2000, "lr": 0.002}),
        ({"seeds": np.int64(3)}, {"seeds": "3"}),
        ({"seeds": np.arange(2)}, {"seeds": "0-1"}),
        ({"seeds": torch.arange(2)}, {"seeds": "0-1"}),
        ({"seeds": torch.tensor(2)}, {"seeds": "2"}),
        ({"lr": torch.tensor(2e-3)}, {"lr": 2e-3}),
        ({"log_std_range": torch.tensor([-5, 0.1])}, {"log_std_range": "-5,0.1"}),
        ({"reset": {"critic", "actor"}}, {"reset": "actor,critic"}),
        ({"unshared": ["actor", "critic"]}, {"unshared": "actor,critic"}),
        ({"unshared": ["actor", "actor"]}, {"unshared": "actor"}),
        ({"unshared": []}, {}),
    ],
)
def test_values_natural_in_python_are_those_of_the_command_line(
    natural: dict[str, Any], written: dict[str, Any], tmp_path: Path
) -> None:
    """Ids, and the labels under which reports show the runs."""
    one, other = (
        cwbench.plan("ewc", "point3", protocol="smoke", results=tmp_path, **given)
        for given in (natural, written)
    )
    assert one.segments == other.segments and one.name == other.name

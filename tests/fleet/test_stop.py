"""Requests to stop, also when something hangs."""

import ctypes
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import environment
from outcomes import states

from cwbench.experiment.toy import train_toy
from cwbench.fleet import stop
from cwbench.fleet.evaluation import Evaluator
from cwbench.fleet.group import Group
from cwbench.methods.finetuning import FineTuning
from cwbench.rollout.collector import Collector
from cwbench.rollout.pool import Pool
from cwbench.store.runs import load_runs

BLOCKED = """
import ctypes, time
from cwbench.fleet import stop

stop.FORCE_SECONDS = 0.2
request = stop.StopRequest(lambda: print("killed", flush=True))
with request.listening():
    print("ready", flush=True)
    while not request:
        time.sleep(0.01)
    print("asked", flush=True)
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):  # the second time nothing wakes this thread, no signal either
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
"""


def test_two_interrupts_end_a_blocked_process() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in ("ready\n", "asked\n"):
        assert process.stdout.readline() == line
        process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == stop.INTERRUPTED
    assert output == "killed\n" and "stopped by force" in errors


def test_two_interrupts_do_not_wait_for_a_hung_worker(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the run continues to the same numbers."""
    toy_run(tmp_path / "whole", seeds=(0, 1))
    monkeypatch.setattr(stop, "FORCE_SECONDS", 1e6)  # not to end the tests on a slow machine
    request, left = Collector.request, [5]

    def interrupted(self: Collector, steps: int, version: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(self.pool.workers[0].pid, signal.SIGSTOP)
        request(self, steps, version)
        if left[0] == 0:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Collector, "request", interrupted)
    with Pool(2) as pool:
        how: dict[str, Any] = {"seeds": (0, 1), "snapshot_seconds": 0}
        outcome = train_toy(pool, tmp_path / "stopped", **how).outcome
        processes = [worker._process for worker in pool.workers]
        for process in processes:
            process.join(20)  # closing the pool has nobody to wait for
    assert outcome.interrupted and not outcome.failed
    assert [process.exitcode for process in processes] == [-signal.SIGKILL] * 2
    toy_run(tmp_path / "stopped", seeds=(0, 1))
    stopped, whole = (load_runs(tmp_path / name).evals for name in ("stopped", "whole"))
    assert stopped.equals(whole)


def test_one_interrupt_gives_the_last_evaluation_the_time_it_needs(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even without any grace a snapshot is taken: only retraining is cut short."""
    monkeypatch.setitem(stop.GRACE_SECONDS, signal.SIGINT, 0.0)
    wait = Evaluator.wait

    def interrupted(self: Evaluator) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        wait(self)
        monkeypatch.setattr(Evaluator, "wait", wait)

    monkeypatch.setattr(Evaluator, "wait", interrupted)
    store, plan, _ = toy_run(tmp_path, snapshot_seconds=0)
    assert store.folder(plan.segments[0]).snapshot.exists()


SLOW = """
import time
from cwbench.learner.trainer import Trainer
from cwbench.methods.finetuning import FineTuning

class Slow(FineTuning):
    def after_update(self, batch, targets):
        if type(self.trainer) is Trainer:  # not when memory is measured
            print("updating", flush=True)
            time.sleep(0.4)
"""


def test_one_interrupt_saves_a_chunk_that_takes_long(tmp_path: Path) -> None:
    """Ten updates of 0.4 s, longer than retraining may continue."""
    (tmp_path / "slow.py").write_text(SLOW)
    small = "--width 8 --batch-size 8 --start-steps 10 --update-after 20 --update-every 10"
    command = "-m cwbench run --method slow.py:Slow --seq point3 --steps-per-task 60 --quiet"
    process = subprocess.Popen(
        [sys.executable, *command.split(), *small.split(), "--threads", "1", "--no-live"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "updating\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1 and "without saving" not in output
    [file] = tmp_path.glob("results/segments/*/status.json")
    status = json.loads(file.read_text())
    assert status["message"] == "interrupted at step 21"
    assert status["resources"]["updates"] == 10
    assert (file.parent / "snapshot" / "state.safetensors").exists()


DEVICES = [
    pytest.param("cpu", id="cpu"),
    pytest.param(
        "cuda",
        id="cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_a_schedulers_signal_saves_and_stops_a_command(device: str, tmp_path: Path) -> None:
    """As `timeout --signal=USR1` and schedulers send it, in the middle of compiled training."""
    command = "-m cwbench run --method er --seq point3 --protocol demo --steps-per-task 1000000"
    process = subprocess.Popen(
        [sys.executable, *command.split(), "--compile", "--device", device, "--no-live", "--yes"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if (step := re.search(r"step (\d+)/1000000", line)) and int(step[1]) > 10_000:
            break
    masks = Path(f"/proc/{process.pid}/status").read_text()  # shown if the signal has no effect
    process.send_signal(signal.SIGUSR1)
    try:
        output, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail("still running; " + ", ".join(re.findall("Sig.*", masks)))
    assert process.returncode == 1 and "to continue: cwbench run" in output
    [file] = tmp_path.glob("results/segments/*/status.json")
    status = json.loads(file.read_text())
    assert status["state"] == "pending" and status["message"].startswith("interrupted at step")
    assert (file.parent / "snapshot" / "state.safetensors").exists()


def test_a_signal_after_ctrl_c_leaves_a_chunk_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C alone lets it end; a second one does not."""
    now = [100.0]
    monkeypatch.setattr("cwbench.fleet.stop.time.monotonic", lambda: now[0])
    request = stop.StopRequest()
    with request.listening():
        os.kill(os.getpid(), signal.SIGINT)
        now[0] += 1e6
        request.check(retraining=False)
        with pytest.raises(stop.Interrupted):
            request.check(retraining=True)
        os.kill(os.getpid(), signal.SIGTERM)
        now[0] += stop.CHUNK_SECONDS - 1
        request.check(retraining=False)
        now[0] += 1
        with pytest.raises(stop.Interrupted):
            request.check(retraining=False)
        assert not request.urgent


def interrupt_retraining(patch: pytest.MonkeyPatch) -> None:
    """The method makes updates at the task's end; a scheduler ends them at once."""

    def on_task_end(self: FineTuning, position: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        self.trainer.retrain(5)

    patch.setitem(stop.GRACE_SECONDS, signal.SIGTERM, 0.0)
    patch.setattr(FineTuning, "on_task_end", on_task_end)


def interrupt_last_evaluation(patch: pytest.MonkeyPatch) -> None:
    """Two Ctrl-Cs, as soon as it has begun."""
    end_task = Group.end_task

    def end(self: Group, *arguments: Any) -> None:
        end_task(self, *arguments)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    patch.setattr(stop, "FORCE_SECONDS", 1e6)
    patch.setattr(Group, "end_task", end)


@pytest.mark.parametrize("interrupt", [interrupt_retraining, interrupt_last_evaluation])
@pytest.mark.parametrize(
    ("snapshot_seconds", "message", "saved"),
    [
        (1e9, "stopped; starts its task again", 0),
        (0.0, "stopped; continues from its last snapshot", 51),
    ],
)
def test_a_command_stopped_after_the_last_step_is_interrupted(
    interrupt: Callable[[pytest.MonkeyPatch], None],
    snapshot_seconds: float,
    message: str,
    saved: int,
    toy_run: Any,
    tmp_path: Path,
) -> None:
    """There is nothing to train after this task, and what is there of it is not its end."""
    how: dict[str, Any] = {"tasks": ("reach-0-1",), "snapshot_seconds": snapshot_seconds}
    with pytest.MonkeyPatch.context() as patch, Pool(2) as pool:  # which may be killed
        interrupt(patch)
        store, plan, outcome = train_toy(pool, tmp_path, **how)
    assert outcome.interrupted and not outcome.trained and not outcome.failed
    folder = store.folder(plan.segments[0])
    status = folder.status()
    assert (status["state"], status["message"], status["step"]) == ("pending", message, saved)
    assert outcome.unsaved == {folder.path.name: (60, saved)}
    assert states(tmp_path) == ["stopped"]
    assert toy_run(tmp_path, **how).outcome.trained == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_compilation_is_not_waited_for(
    number: int, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler may catch any Exception; the fleet has nothing to save yet."""
    torch.compiler.reset()
    after = []

    def compiling(graph: Any, _: object) -> Any:
        os.kill(os.getpid(), number)
        after.append(graph)
        return graph.forward

    def update(*_: object) -> None:
        torch.compile(torch.sin, backend=compiling)(torch.zeros(1))

    monkeypatch.setattr("cwbench.learner.trainer.compiled", lambda function, device: update)
    store, plan, outcome = toy_run(tmp_path, compiled=True)
    assert outcome.interrupted and not outcome.failed and not after
    folder = store.folder(plan.segments[0])
    assert folder.state == "pending" and not folder.snapshot.exists()


def test_nothing_is_compiled_after_a_request_to_stop() -> None:
    request = stop.StopRequest()
    with request.listening():
        request.begin_compilation()
        request.end_compilation()
        os.kill(os.getpid(), signal.SIGUSR1)  # between two compilations: only remembered
        with pytest.raises(stop.Interrupted):
            request.begin_compilation()


@pytest.mark.parametrize(("handler", "asked"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_asks_to_stop_unless_nohup_ignores_it(handler: Any, asked: bool) -> None:
    before, request = signal.signal(signal.SIGHUP, handler), stop.StopRequest()
    try:
        with request.listening():
            os.kill(os.getpid(), signal.SIGHUP)
            assert bool(request) == asked
        assert signal.getsignal(signal.SIGHUP) == handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_that_the_parent_process_blocked_ask_to_stop() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        request = stop.StopRequest()
        with request.listening():
            signal.raise_signal(signal.SIGUSR1)
            assert request
        assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        signal.sigtimedwait([signal.SIGUSR1], 0)  # where it is still blocked it would end pytest
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize(
    "again", [lambda request: request.check(retraining=False), stop.StopRequest.end_compilation]
)
def test_signals_that_a_library_took_for_itself_ask_to_stop(
    again: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As LLVM, with which Triton compiles, takes SIGUSR1."""
    monkeypatch.setattr(stop, "HANDLE_SECONDS", 0.0)
    request = stop.StopRequest()
    with request.listening():
        ctypes.CDLL(None).signal(int(signal.SIGUSR1), ctypes.c_void_p(int(signal.SIG_IGN)))
        os.kill(os.getpid(), signal.SIGUSR1)
        assert not request
        again(request)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert request


def test_a_compilation_may_end_in_another_thread() -> None:
    """On CUDA, where autograd runs a backward pass in a thread per device."""
    request = stop.StopRequest()
    with request.listening():
        request.begin_compilation()
        ctypes.CDLL(None).signal(int(signal.SIGUSR1), ctypes.c_void_p(int(signal.SIG_IGN)))
        with ThreadPoolExecutor(1) as other:
            other.submit(request.end_compilation).result()
        request.check(retraining=False)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert request


def test_what_is_written_to_a_closed_terminal_is_no_error(tmp_path: Path) -> None:
    ours, terminal = os.openpty()
    os.close(ours)
    with pytest.raises(OSError, match="Input/output"):
        os.write(terminal, b"progress")
    with open(tmp_path / "log", "wb", buffering=0) as log:
        stop.leave_closed_terminal([terminal, log.fileno()])
        for stream in (terminal, log.fileno()):
            os.write(stream, b"progress")
    os.close(terminal)
    assert (tmp_path / "log").read_bytes() == b"progress"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stderr", "answers"), [(Terminal(), 1), (io.StringIO(), 0)])
def test_the_first_ctrl_c_is_answered_on_a_terminal(
    stderr: io.StringIO, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb", buffering=0) as signals:
        signals.write(bytes([signal.SIGUSR1, signal.SIGINT]))
    stop.StopRequest()._count(reader, threading.Event())
    os.close(reader)
    text = "finishing the current updates, then saving; Ctrl-C again stops at once, unsaved"
    assert stderr.getvalue().count(text) == answers

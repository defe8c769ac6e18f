"""A plan among several processes."""

import contextlib
import errno
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import environment
from other_machine import claim_elsewhere

from cwbench.fleet import claiming
from cwbench.store.claims import Claims
from cwbench.store.results import SegmentFolder


def test_a_fleet_that_lost_its_claim_stops_and_says_so(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine takes the segment after the first evaluation."""
    append, rows = SegmentFolder.append, list[Any]()

    def steal(self: SegmentFolder, name: str, columns: Any, new: Any) -> None:
        append(self, name, columns, new)
        if name == "evals.csv":
            rows.append((self.path / name).read_text())
            claim_elsewhere(self)

    monkeypatch.setattr(SegmentFolder, "append", steal)
    store, plan, outcome = toy_run(tmp_path, tasks=("reach-0-1",))
    folder = store.folder(plan.segments[0])
    [message] = outcome.failed.values()
    assert "another process has taken it" in message and outcome.trained == 0
    assert len(rows) == 1 and (folder.path / "evals.csv").read_text() == rows[0]
    assert json.loads((folder.path / "claim.json").read_text())["token"] == "other"


def hold_until_the_rest_is_done(store: Any, plan: Any, then: Callable[[Any], None]) -> Any:
    """Claim the first segment elsewhere; when the other seed's are done, do `then` and let go."""
    first, rest = plan.segments[0], [s for s in plan.segments if s.seed != plan.segments[0].seed]
    owner = Claims()
    assert owner.take(store.folder(first))

    def watch() -> None:
        while not all(store.folder(segment).done for segment in rest):
            time.sleep(0.02)
        then(store.folder(first))
        owner.release(store.folder(first))

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_what_another_process_lets_go_is_taken_over(
    toy_run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(claiming, "WAIT_SECONDS", 0.02)
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), stop_after=3)
    watch = hold_until_the_rest_is_done(store, plan, lambda folder: None)
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
    watch.join()
    assert (outcome.trained, outcome.elsewhere, outcome.skipped) == (6, 0, 0) and outcome.good
    assert not list(tmp_path.glob("segments/*/claim.json"))


@pytest.mark.parametrize(
    ("message", "told"), [("out of luck", "out of luck"), ("", "failed in another process")]
)
def test_what_fails_in_another_process_is_not_waited_for(
    message: str, told: str, toy_run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(claiming, "WAIT_SECONDS", 0.02)
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), stop_after=3)
    fail = lambda folder: folder.set_status("failed", message=message)  # noqa: E731
    watch = hold_until_the_rest_is_done(store, plan, fail)
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
    watch.join()
    # The other seed's three tasks are ours; two children wait for the one that failed.
    assert (outcome.trained, outcome.elsewhere, outcome.skipped) == (3, 0, 2)
    assert list(outcome.failed.values()) == [told] and not outcome.good


def test_a_segment_that_cannot_be_claimed_fails_alone(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that belongs to another user."""
    known = Claims.take

    def refuse(self: Claims, folder: SegmentFolder) -> bool:
        if folder.path.name.startswith("finetuning-1-"):
            raise PermissionError(errno.EACCES, "Permission denied", str(folder.path / ".claim.x"))
        return known(self, folder)

    monkeypatch.setattr(Claims, "take", refuse)
    _, _, outcome = toy_run(tmp_path, "finetuning", "l2")
    [(folder, message)] = outcome.failed.items()
    assert folder.startswith("finetuning-1-") and message.endswith(".claim.x: Permission denied")
    assert (outcome.trained, outcome.skipped) == (3, 2)  # of l2, and of fine-tuning


def test_a_state_that_cannot_be_written_ends_no_other_fleet(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    known = SegmentFolder.set_status

    def fail(self: SegmentFolder, state: str, **content: Any) -> None:
        if self.path.name.startswith("finetuning-1-"):
            raise OSError(errno.EIO, "Input/output error", str(self.path / "status.json"))
        known(self, state, **content)

    monkeypatch.setattr(SegmentFolder, "set_status", fail)
    _, _, outcome = toy_run(tmp_path, "finetuning", "l2")
    [(folder, message)] = outcome.failed.items()
    assert folder.startswith("finetuning-1-") and "status.json: Input/output error" in message
    assert (outcome.trained, outcome.skipped) == (3, 2)


RUN = ["run", "--method", "finetuning", "--seq", "faucet-close,push", "--protocol", "smoke"]
RUN += ["--threads", "1", "--workers", "1", "--no-live", "--snapshot-minutes", "0.01"]
RUN += ["--eval-episodes", "1", "--width", "16"]


@contextlib.contextmanager
def cwbench(*args: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "cwbench", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    with process:
        try:
            yield process
        except BaseException:
            process.kill()  # else leaving would wait for it
            raise


def eventually(happened: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    while not happened():
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        time.sleep(0.02)


def read_until(text: str, process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    seen = ""
    while text not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    return seen


@pytest.mark.commands
def test_the_survivor_of_two_processes_goes_on_where_the_other_was(tmp_path: Path) -> None:
    """One waits for the other's first task; the other is killed; nothing is trained twice."""
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    with cwbench(*RUN, "--results", str(shared)) as first:
        eventually(lambda: list(shared.glob("segments/*/snapshot/state.safetensors")), first)
        first.send_signal(signal.SIGSTOP)  # else it may be done before the second has begun
        with cwbench(*RUN, "--results", str(shared)) as second:
            read_until("waiting for 2 segments", second)
            first.kill()
            first.wait()
            rest = second.communicate()[0]
    assert second.returncode == 0 and "2 segments trained" in rest
    [status] = shared.glob("segments/finetuning-1-*/status.json")
    begun, taken_over = json.loads(status.read_text())["sessions"]  # the steps they began at
    assert begun == 0 < taken_over
    with cwbench(*RUN, "--results", str(alone)) as undisturbed:
        undisturbed.communicate()
    for one, other in zip(*(sorted(r.glob("segments/*")) for r in (shared, alone)), strict=True):
        for name in ("evals.csv", "end.safetensors"):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name

"""Two processes on one results folder: each segment is trained by one of them."""

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cwbench.fleet import sharing
from cwbench.store import claims
from cwbench.store.claims import STALE_SECONDS, Claims
from cwbench.store.results import ClaimLost, SegmentFolder

ROOT = Path(__file__).parent.parent.parent


def test_a_claim_is_held_by_one(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    with Claims() as first, Claims() as second:
        assert first.take(folder) and not second.take(folder)
        first.release(folder)
        assert second.take(folder) and not first.take(folder)
    assert not list(tmp_path.iterdir())


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def claim_elsewhere(folder: SegmentFolder) -> Path:
    """A claim by a process of another machine."""
    owner = {"token": "other", "host": platform.node(), "pid": os.getpid(), "place": "elsewhere"}
    file = folder.path / "claim.json"
    file.write_text(json.dumps(owner))
    return file


def test_a_silent_owner_elsewhere_loses_its_claim_to_one(tmp_path: Path) -> None:
    folder, clock = SegmentFolder(tmp_path), Clock()
    file = claim_elsewhere(folder)
    with Claims(clock) as one, Claims(clock) as other:
        assert not one.take(folder) and not other.take(folder)
        clock.now += STALE_SECONDS - 1
        assert not one.take(folder)
        os.utime(file)  # a sign of life
        clock.now += STALE_SECONDS - 1
        assert not one.take(folder) and not other.take(folder)
        clock.now += STALE_SECONDS + 1
        assert [one.take(folder), other.take(folder)] == [True, False]


def test_clocks_that_differ_take_no_claim(tmp_path: Path) -> None:
    """The other machine's clock is some minutes ahead or behind."""
    folder = SegmentFolder(tmp_path)
    file = claim_elsewhere(folder)
    for seconds in (-2 * STALE_SECONDS, 2 * STALE_SECONDS):
        moment = time.time() + seconds
        os.utime(file, (moment, moment))
        with Claims() as other:
            assert not other.take(folder) and other.elsewhere(folder)


def test_a_stopped_process_of_this_machine_keeps_its_claim(tmp_path: Path) -> None:
    """One that was stopped by Ctrl-Z gives no sign of life, but it will go on."""
    folder, clock = SegmentFolder(tmp_path), Clock()
    assert Claims().take(folder)  # its thread never starts
    with Claims(clock) as other:
        assert not other.take(folder)
        clock.now += 2 * STALE_SECONDS
        assert not other.take(folder)


def test_a_process_number_that_is_used_again_holds_nothing(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    assert Claims().take(folder)
    file = tmp_path / "claim.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"started": "1"}))
    with Claims() as other:
        assert other.take(folder)


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_an_unreadable_claim_blocks_for_seconds(content: str, tmp_path: Path) -> None:
    folder, clock = SegmentFolder(tmp_path), Clock()
    (tmp_path / "claim.json").write_text(content)
    with Claims(clock) as one:
        assert not one.take(folder)  # someone may be writing it
        clock.now += claims.EMPTY_SECONDS + 1
        assert one.take(folder)


def test_who_lost_a_claim_neither_writes_nor_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with Claims() as loser, Claims() as winner:
        mine = SegmentFolder(tmp_path, loser.token)
        assert loser.take(mine)
        mine.set_status("running")
        (tmp_path / "claim.json").unlink()
        with pytest.raises(ClaimLost, match="another process has taken it"):
            mine.set_status("running")
        theirs = SegmentFolder(tmp_path, winner.token)
        assert winner.take(theirs)
        before = sorted(tmp_path.iterdir())
        for write in (
            lambda: mine.set_status("done"),
            lambda: mine.append("evals.csv", ("step",), [(1,)]),
            lambda: mine.truncate("evals.csv", 0),
            mine.seal,
        ):
            with pytest.raises(ClaimLost):
                write()
        loser.release(mine)
        assert sorted(tmp_path.iterdir()) == before and theirs.state == "running"
        theirs.set_status("running", step=1)


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


def test_a_dead_process_of_this_machine_is_noticed_at_once(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    code = "import sys, os; from pathlib import Path; from cwbench.store.claims import Claims; "
    code += "from cwbench.store.results import ClaimLost, SegmentFolder; "
    code += "taken = Claims().take(SegmentFolder(Path(sys.argv[1]))); os._exit(7 if taken else 1)"
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert killed.returncode == 7 and (tmp_path / "claim.json").exists()
    with Claims() as other:
        assert other.take(folder)


def test_a_living_owner_gives_signs_of_life(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.02)
    folder, file = SegmentFolder(tmp_path), tmp_path / "claim.json"
    with Claims() as owner:
        assert owner.take(folder)
        os.utime(file, (0, 0))
        deadline = time.monotonic() + 60
        while file.stat().st_mtime < 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)


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
    monkeypatch.setattr(sharing, "WAIT_SECONDS", 0.02)
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), stop_after=3)
    watch = hold_until_the_rest_is_done(store, plan, lambda folder: None)
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
    watch.join()
    assert (outcome.trained, outcome.elsewhere, outcome.skipped) == (6, 0, 0) and outcome.good
    assert not list(tmp_path.glob("segments/*/claim.json"))


def test_what_fails_in_another_process_is_not_waited_for(
    toy_run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sharing, "WAIT_SECONDS", 0.02)
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), stop_after=3)
    fail = lambda folder: folder.set_status("failed", message="out of luck")  # noqa: E731
    watch = hold_until_the_rest_is_done(store, plan, fail)
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
    watch.join()
    # The other seed's three tasks are ours; two children wait for the one that failed.
    assert (outcome.trained, outcome.elsewhere, outcome.skipped) == (3, 0, 2)
    assert list(outcome.failed.values()) == ["out of luck"] and not outcome.good


RUN = ["run", "--method", "finetuning", "--seq", "faucet-close,push", "--protocol", "smoke"]
RUN += ["--threads", "1", "--workers", "1", "--no-live", "--snapshot-minutes", "0.01"]
RUN += ["--eval-episodes", "1", "--width", "16"]


@contextlib.contextmanager
def cwbench(*args: str) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cwbench", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
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

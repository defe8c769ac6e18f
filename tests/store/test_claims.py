"""Two processes on one results folder: each segment is trained by one of them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cwbench.fleet import sharing
from cwbench.store import claims
from cwbench.store.claims import STALE_SECONDS, Claims
from cwbench.store.results import SegmentFolder

ROOT = Path(__file__).parent.parent.parent


def test_a_claim_is_held_by_one(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    with Claims() as first, Claims() as second:
        assert first.take(folder) and not second.take(folder)
        first.release(folder)
        assert second.take(folder) and not first.take(folder)
    assert not list(tmp_path.iterdir())


def test_a_dead_owner_loses_its_claim_to_one(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    dead = Claims()  # its thread never starts, as if the process had been killed
    assert dead.take(folder)
    long_ago = time.time() - 2 * STALE_SECONDS
    os.utime(tmp_path / "claim.json", (long_ago, long_ago))
    with Claims() as one, Claims() as other:
        assert [one.take(folder), other.take(folder)] == [True, False]


def test_a_dead_process_of_this_machine_is_noticed_at_once(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    code = "import sys, os; from pathlib import Path; from cwbench.store.claims import Claims; "
    code += "from cwbench.store.results import SegmentFolder; "
    code += "taken = Claims().take(SegmentFolder(Path(sys.argv[1]))); os._exit(7 if taken else 1)"
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert killed.returncode == 7 and (tmp_path / "claim.json").exists()
    with Claims() as other:
        assert other.take(folder)


def test_a_living_owner_keeps_its_claim(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.02)
    folder = SegmentFolder(tmp_path)
    with Claims() as owner, Claims() as other:
        assert owner.take(folder)
        long_ago = time.time() - 2 * STALE_SECONDS
        os.utime(tmp_path / "claim.json", (long_ago, long_ago))
        deadline = time.monotonic() + 5
        while (tmp_path / "claim.json").stat().st_mtime < long_ago + 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not other.take(folder)


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

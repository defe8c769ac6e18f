"""Two processes on one results folder: each segment is trained by one of them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from other_machine import claim_elsewhere
from other_user import private

from cwbench.store import claims
from cwbench.store.claims import STALE_SECONDS, Claims
from cwbench.store.results import ClaimLost, SegmentFolder


def test_a_claim_is_held_by_one(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    with Claims() as first, Claims() as second:
        assert first.take(folder) and not second.take(folder)
        first.release(folder)
        assert second.take(folder) and not first.take(folder)
    assert not list(tmp_path.iterdir())


def test_what_was_finished_meanwhile_is_not_taken(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    with Claims() as claims_of_this:
        folder.set_status("done")
        before = sorted(tmp_path.iterdir())
        assert not claims_of_this.take(folder)
        assert not claims_of_this.held and sorted(tmp_path.iterdir()) == before


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


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


@pytest.mark.parametrize("days", [-2, 400])
def test_a_claim_of_another_day_is_nobodys(days: int, tmp_path: Path) -> None:
    """Also one that a clock in the future left behind."""
    folder = SegmentFolder(tmp_path)
    moment = time.time() + days * 86_400
    os.utime(claim_elsewhere(folder), (moment, moment))
    assert claims.owner(folder) == ""
    with Claims() as one:
        assert one.take(folder)


def test_a_link_that_was_made_twice_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS repeats a request whose reply was lost; the second answer is that the file exists."""
    link = Path.hardlink_to

    def twice(file: Path, target: Path) -> None:
        link(file, target)
        link(file, target)

    monkeypatch.setattr(Path, "hardlink_to", twice)
    folder = SegmentFolder(tmp_path)
    with Claims() as one:
        assert one.take(folder) and (tmp_path / "claim.json") in one.held
        assert not Claims().take(folder)
    assert not list(tmp_path.iterdir())


def test_nobody_waits_for_a_claim_of_its_own(tmp_path: Path) -> None:
    """It could not be removed when it was released."""
    folder, one = SegmentFolder(tmp_path), Claims()
    assert one.take(folder)
    one.held.clear()
    assert not one.elsewhere(folder) and Claims().elsewhere(folder)
    assert one.take(folder)


def test_a_process_that_is_hidden_from_others_keeps_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hidepid, /proc does not show processes of other users; its signs of life decide."""
    folder, clock = SegmentFolder(tmp_path), Clock()
    assert Claims().take(folder)
    monkeypatch.setattr(claims, "_started", lambda pid: "")
    with Claims(clock) as other:
        assert not other.take(folder) and claims.owner(folder)
        clock.now += STALE_SECONDS - 1
        assert not other.take(folder)
        clock.now += 2
        assert other.take(folder)


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


def test_a_private_claim_is_no_half_written_one(tmp_path: Path) -> None:
    folder, clock = SegmentFolder(tmp_path), Clock()
    with private(claim_elsewhere(folder)), Claims(clock) as one:
        assert not one.take(folder) and claims.owner(folder)
        clock.now += claims.EMPTY_SECONDS + 1
        assert not one.take(folder)
        clock.now += STALE_SECONDS
        assert not one.elsewhere(folder)


def test_who_lost_a_claim_neither_writes_nor_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with Claims() as loser, Claims() as winner:
        mine = SegmentFolder(tmp_path, loser.token)
        assert loser.take(mine)
        mine.set_status("running")
        (tmp_path / "claim.json").unlink()
        with pytest.raises(ClaimLost, match=r"its claim\.json is gone"):
            mine.set_status("running")
        theirs = SegmentFolder(tmp_path, winner.token)
        assert winner.take(theirs)
        with pytest.raises(ClaimLost, match="another process has taken it, since"):
            mine.set_status("running")
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


def test_a_folder_that_was_moved_away_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results" / "segments" / "one"
    path.mkdir(parents=True)
    with Claims() as one:
        folder = SegmentFolder(path, one.token)
        assert one.take(folder)
        (tmp_path / "results").rename(tmp_path / "elsewhere")
        with pytest.raises(FileNotFoundError, match=f"moved or deleted .*'{path}'"):
            folder.set_status("running")
    assert not (tmp_path / "results").exists()


def test_a_dead_process_of_this_machine_is_noticed_at_once(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    code = "import sys, os; from pathlib import Path; from cwbench.store.claims import Claims; "
    code += "from cwbench.store.results import ClaimLost, SegmentFolder; "
    code += "taken = Claims().take(SegmentFolder(Path(sys.argv[1]))); os._exit(7 if taken else 1)"
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert killed.returncode == 7 and (tmp_path / "claim.json").exists()
    with Claims() as other:
        assert other.take(folder)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's accounts")
def test_a_dead_process_that_nobody_asked_for_holds_nothing(tmp_path: Path) -> None:
    """Its parent has not waited for it, as in a container without an init process."""
    folder = SegmentFolder(tmp_path)
    code = "import sys; from pathlib import Path; from cwbench.store.claims import Claims; "
    code += "from cwbench.store.results import SegmentFolder; "
    code += "print(Claims().take(SegmentFolder(Path(sys.argv[1]))), flush=True); input()"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], **pipes) as child:
        assert child.stdout and child.stdout.readline() == "True\n"
        with Claims() as other:
            assert not other.take(folder)
            os.kill(child.pid, signal.SIGKILL)
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # leaves it unasked
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

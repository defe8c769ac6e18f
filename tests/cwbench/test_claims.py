"""Two processes on one results folder: each segment is trained by one of them."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cwbench import claims
from cwbench.claims import STALE_SECONDS, Claims
from cwbench.results import SegmentFolder


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
    code = "import sys, os; from pathlib import Path; from cwbench.claims import Claims; "
    code += "from cwbench.results import SegmentFolder; "
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


def test_claimed_segments_are_left_to_their_owner(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, seeds=(0, 1), stop_after=3)
    folder = store.folder(plan.segments[0])
    with Claims() as elsewhere:
        assert elsewhere.take(folder)
        _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
        # The other seed's three tasks are ours; two children wait for the one we may not touch.
        assert (outcome.trained, outcome.elsewhere, outcome.skipped) == (3, 1, 2)
    _, _, outcome = toy_run(tmp_path, seeds=(0, 1))
    assert (outcome.trained, outcome.elsewhere, outcome.skipped) == (3, 0, 0)
    assert not list(tmp_path.glob("segments/*/claim.json"))

"""Which files can go."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from outcomes import states

from cwbench.cli import main
from cwbench.store import checkpoint, cleanup
from cwbench.store.claims import Claims
from cwbench.store.cleanup import leftovers
from cwbench.store.integrity import check_end
from cwbench.store.results import CLAIM, SegmentFolder, claim_token

TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")


def old(file: Path, content: str = "x") -> Path:
    file.write_text(content)
    moment = time.time() - 2 * 86_400  # old for a claim, too
    os.utime(file, (moment, moment))
    return file


@pytest.mark.parametrize("name", ["recall", "perfect-memory"])
def test_an_unfinished_run_continues_after_clean(name: str, toy_run: Any, tmp_path: Path) -> None:
    """Stopped in the last task, so that it needs two replay memories and a snapshot."""
    whole, plan, _ = toy_run(tmp_path / "whole", name)
    parts, _, outcome = toy_run(tmp_path / "parts", name, stop_after=22, snapshot_seconds=0)
    assert outcome.interrupted and states(tmp_path / "parts") == ["done", "done", "stopped"]
    first, last = (parts.folder(plan.segments[index]) for index in (0, -1))
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


def test_what_a_killed_merge_left_is_no_segment_and_goes(toy_run: Any, tmp_path: Path) -> None:
    """Nor is a copy made by hand, which stays."""
    store, plan, _ = toy_run(tmp_path, "perfect-memory", stop_after=14)
    before = states(tmp_path)
    last = store.folder(plan.segments[1])
    assert before == ["done", "stopped", "waiting"]
    rest, copy = (last.path.with_name(name.format(last.path.name)) for name in (".{}.x", "{}.bak"))
    for other in (rest, copy):
        shutil.copytree(last.path, other)
        SegmentFolder(other).set_status("done")
    assert states(tmp_path) == before
    assert leftovers(tmp_path) == ([], [])  # a merge may be at work
    moment = time.time() - 2 * 86_400
    for path in (rest, *rest.rglob("*")):
        os.utime(path, (moment, moment))
    assert [item.path for item in leftovers(tmp_path)[0]] == [rest]
    main(["clean", str(tmp_path), "--yes"])
    assert not rest.exists() and copy.exists() and last.snapshot.exists()


def test_clean_leaves_a_working_process_alone(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    folder = store.folder(plan.segments[0])
    assert len(leftovers(tmp_path)[0]) == 1
    (folder.path / "claim.json").write_text(
        json.dumps({"token": "x", "host": "elsewhere", "pid": 1})
    )
    assert leftovers(tmp_path) == ([], [])


def test_clean_takes_nothing_from_a_process_that_has_just_come(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the second look, and before anything goes."""
    store, plan, _ = toy_run(tmp_path, stop_after=12, snapshot_seconds=0)
    folder = store.folder(plan.segments[1])
    old(folder.path / CLAIM, json.dumps({"token": "", "host": "gone", "pid": 1}))
    old(folder.snapshot.parent / "replay-2-999999.npy")
    seen = leftovers(tmp_path)
    assert len(seen[0]) == 2
    monkeypatch.setattr(cleanup, "leftovers", lambda root: seen)
    with Claims() as other:
        assert other.take(folder)
        assert cleanup.remove(tmp_path, seen[0]) == []
        assert claim_token(folder.path / CLAIM) == other.token
    assert len(cleanup.remove(tmp_path, seen[0])) == 2
    assert not list(tmp_path.rglob("replay-2-999999.npy")) and folder.snapshot.exists()


def test_a_killed_clean_leaves_no_half_of_a_replay(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one removes what the first did not come to."""
    store, plan, _ = toy_run(tmp_path, "recall", tasks=TASKS[:1])
    folder = store.folder(plan.segments[0])

    def killed(path: Path) -> None:
        min(path.iterdir()).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(shutil, "rmtree", killed)
        main(["clean", str(tmp_path), "--yes"])
    assert not folder.replay.exists()
    check_end(folder)
    [rest], _ = leftovers(tmp_path)
    assert rest.path.parent == folder.path and rest.bytes > 0
    main(["clean", str(tmp_path), "--yes"])
    assert leftovers(tmp_path) == ([], []) and not rest.path.exists()

"""Damage is found by checksums and named; the rest goes on."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from faults import flip
from sample_results import small, write_results

from cwbench.spec.errors import UserError
from cwbench.store import checkpoint
from cwbench.store.files import Damaged
from cwbench.store.integrity import (
    check_end,
    check_snapshot,
    damages,
    full_check,
    needed_segments,
    quick_check,
    table_lengths,
)
from cwbench.store.merge import merge
from cwbench.store.results import SegmentFolder
from cwbench.store.runs import load_runs
from cwbench.store.status import read_status


@pytest.fixture(scope="module")
def trained(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Two runs of a method that keeps its data: first tasks done, second ones interrupted."""
    root = tmp_path_factory.mktemp("trained")
    _, plan, _ = toy_run(root, "perfect-memory", seeds=(0, 1), stop_after=14)
    return root, [segment.folder for segment in plan.segments]


@pytest.fixture
def folders(trained: tuple[Path, list[str]], tmp_path: Path) -> list[SegmentFolder]:
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    return [SegmentFolder(tmp_path / "segments" / name) for name in trained[1]]


def test_every_file_of_a_done_segment_is_guarded(folders: list[SegmentFolder]) -> None:
    done = folders[0]
    check_end(done)
    names = sorted(done.intact_status()["checksums"])
    assert names == ["end.safetensors", "evals.csv", "replay/transitions.npy", "segment.json",
                     "train.csv"]  # fmt: skip
    for name in names:
        flip(done.path / name, 1001)
        with pytest.raises(Damaged, match=name):
            check_end(done)
        flip(done.path / name, 1001)
    (done.replay / "transitions.npy").unlink()
    check_end(done)  # as `cwbench clean` leaves it


def test_a_copy_without_weights_is_not_called_damaged(
    folders: list[SegmentFolder], tmp_path: Path
) -> None:
    merge([tmp_path], tmp_path / "records")
    copy = SegmentFolder(tmp_path / "records" / "segments" / folders[0].path.name)
    with pytest.raises(UserError, match=r"its weights are not in .*; use another .* --weights$"):
        check_end(copy)


def test_a_snapshot_that_was_replaced_while_it_was_read_is_not_damaged(
    folders: list[SegmentFolder], tmp_path: Path
) -> None:
    """The first look has the header of one and the data of the next."""
    looks = Counter[Path]()

    def torn(folder: SegmentFolder) -> None:
        looks[folder.path] += 1
        torn_once = folder.path == folders[1].path and looks[folder.path] == 1
        if torn_once or folder.path == folders[0].path:
            raise Damaged(folder.snapshot, "its checksum differs from the recorded one")

    assert [damage.segment for damage in damages(tmp_path, torn)] == [folders[0].path.name]
    assert sorted(looks.values()) == [1] * (len(looks) - 2) + [2, 2]


def test_half_of_a_replay_is_damage(toy_run: Any, tmp_path: Path) -> None:
    """Without its annotations RECALL would clone zeros; without any file `clean` has been here."""
    store, plan, _ = toy_run(tmp_path, "recall", tasks=("reach-0-1",))
    done = store.folder(plan.segments[0])
    annotations, transitions = sorted(done.replay.iterdir())
    annotations.unlink()
    with pytest.raises(Damaged, match=f"{annotations.name}: missing"):
        check_end(done)
    transitions.unlink()
    check_end(done)


def test_every_file_of_a_snapshot_is_guarded(folders: list[SegmentFolder]) -> None:
    paused = folders[1]
    check_snapshot(paused)
    inside = sorted(paused.snapshot.parent.iterdir())
    assert len(inside) == 2
    for file in (*inside, paused.path / "evals.csv", paused.path / "train.csv"):
        good = file.read_bytes()
        flip(file, 8 * len(good) - 77)
        with pytest.raises(Damaged, match=file.name):
            check_snapshot(paused)
        file.write_bytes(good[:-1])
        with pytest.raises(Damaged, match=file.name):
            check_snapshot(paused)
        file.write_bytes(good)
    paused.append("evals.csv", ("step",), [(70,)])  # rows after the snapshot are cut off anyway
    check_snapshot(paused)


def test_a_snapshot_names_only_files_of_its_own(folders: list[SegmentFolder]) -> None:
    paused, victim = folders[1], folders[1].path.parent / "victim.txt"
    victim.write_text("precious")
    tensors, record = checkpoint.load(paused.snapshot)
    for wrong in (
        {"files": {"../victim.txt": 0}},
        {"files": {"evals.csv": -1}},
        {"parts": ["../../victim.txt"]},
        {"parts": 3},
        {"parts": None},
    ):
        checkpoint.save(paused.snapshot, tensors, record | wrong)
        with pytest.raises(Damaged, match=r"state\.safetensors"):
            check_snapshot(paused)
        with pytest.raises(Damaged, match=r"state\.safetensors"):  # for `doctor`
            quick_check(paused)
    assert victim.read_text() == "precious"


def test_a_table_that_a_snapshot_does_not_name_was_empty(tmp_path: Path) -> None:
    """In snapshots of versions without it; what it has now came later and is cut off."""
    lengths = table_lengths({"files": {"evals.csv": 30, "train.csv": 20}}, tmp_path)
    assert lengths == {"evals.csv": 30, "train.csv": 20, "diagnostics.csv": 0}


def test_what_a_run_still_starts_from() -> None:
    """Two runs of which each was set aside in part; the third is done."""
    runs = [["a", "b", "c", "d"], ["x", "y", "z"], ["k", "l"]]
    done = {"b", "d", "x", "k", "l"}
    assert list(needed_segments(runs, done)) == ["a", "b", "x", "y"]


def test_weights_are_missed_only_where_a_run_continues(tmp_path: Path) -> None:
    """The first run is done, the second in the second of its three tasks; neither has weights."""
    for seed, part in ((0, None), (1, 0.5)):
        write_results(
            tmp_path,
            sequence_names=["cw3-1"],
            settings=[small("ewc")],
            seeds=[seed],
            name=str(seed),
            upto=part,
        )
    [missed] = damages(tmp_path, quick_check)
    assert missed.segment.startswith("ewc-1-") and "-s1-" in missed.segment
    assert missed.reason == "missing"


def test_weights_without_a_recorded_checksum_have_one_of_their_own(
    folders: list[SegmentFolder],
) -> None:
    """As in version 0.2, whose status named none."""
    folders[0].set_status("done", checksums={})
    full_check(folders[0])
    flip(folders[0].end, 8 * folders[0].end.stat().st_size - 77)
    with pytest.raises(Damaged, match=r"end\.safetensors: its checksum"):
        full_check(folders[0])


def test_a_changed_success_rate_is_left_out_and_named(folders: list[SegmentFolder]) -> None:
    root, file = folders[0].path.parent.parent, folders[0].path / "evals.csv"
    before = load_runs(root)
    flip(file, 8 * (file.read_text().index(",2,") + 1))  # 2 episodes -> 3
    after = load_runs(root)
    assert not before.problems and len(after.problems) == 1
    assert f"segments/{folders[0].path.name}/evals.csv: its checksum" in after.problems[0]
    assert set(before.evals["segment"]) - set(after.evals["segment"]) == {
        folders[0].path.name[-12:]
    }


def test_a_whole_folder_is_checked(folders: list[SegmentFolder]) -> None:
    root = folders[0].path.parent.parent
    assert not list(damages(root, full_check))
    flip(folders[0].end, 8 * 2000)
    (folders[1].path / "status.json").write_text("")
    (folders[3].path / "segment.json").write_bytes(b"\xff")
    found = {damage.segment: damage.file.split("/")[-1] for damage in damages(root, full_check)}
    assert found == {
        folders[0].path.name: "end.safetensors",
        folders[1].path.name: "status.json",
        folders[3].path.name: "segment.json",
    }


def test_one_damaged_file_fails_one_run(
    toy_run: Any, folders: list[SegmentFolder], tmp_path: Path
) -> None:
    flip(folders[1].snapshot, 8 * 5000)  # the second task of seed 0
    _, _, outcome = toy_run(tmp_path, "perfect-memory", seeds=(0, 1))
    [(name, message)] = outcome.failed.items()
    assert name == folders[1].path.name and "state.safetensors" in message
    assert (outcome.trained, outcome.skipped) == (2, 1)  # the other seed's; a child waits
    (folders[1].path / "status.json").write_text("")
    _, _, outcome = toy_run(tmp_path, "perfect-memory", seeds=(0, 1))
    assert "status.json: empty" in outcome.failed[name] and "repair" in outcome.failed[name]


def test_links_in_a_segment_stop_its_training(
    toy_run: Any, folders: list[SegmentFolder], tmp_path: Path
) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    table = folders[1].path / "train.csv"
    table.unlink()
    table.symlink_to(victim)
    _, _, outcome = toy_run(tmp_path, "perfect-memory", seeds=(0,))
    assert "train.csv: a link" in outcome.failed[folders[1].path.name]
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["evals.csv", "train.csv"])
def test_a_done_segment_without_its_tables_is_not_done(
    toy_run: Any, folders: list[SegmentFolder], tmp_path: Path, name: str
) -> None:
    """For `doctor`, `status` and `run`, which read no table of it."""
    done = folders[0]
    (done.path / name).unlink()
    [damage] = damages(tmp_path, quick_check)
    assert (damage.segment, damage.reason) == (done.path.name, "missing")
    assert damage.file == f"segments/{done.path.name}/{name}"
    [experiment], [problem] = read_status(tmp_path)
    assert experiment.counts["damaged"] == 1 and f"{name}: missing" in problem
    _, _, outcome = toy_run(tmp_path, "perfect-memory", seeds=(0, 1))
    assert f"{name}: missing" in outcome.failed[done.path.name]
    assert (outcome.trained, outcome.skipped) == (2, 2)  # the other seed's; its own wait for it

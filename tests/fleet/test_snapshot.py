"""A group continued from a snapshot equals one that was never interrupted."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from other_machine import claim_elsewhere

from cwbench.fleet import snapshot
from cwbench.fleet.state import GroupState, RunState
from cwbench.learner import Method, Trainer
from cwbench.spec.statistics import STATISTICS
from cwbench.store import checkpoint
from cwbench.store.files import Damaged
from cwbench.store.integrity import saved_step, snapshot_step
from cwbench.store.results import ClaimLost, SegmentFolder

Make = Callable[..., Trainer]


@pytest.fixture
def folders(tmp_path: Path) -> list[SegmentFolder]:
    made = [SegmentFolder(tmp_path / str(run)) for run in range(2)]
    for folder in made:
        folder.path.mkdir()
    return made


def method_of(trainer: Trainer) -> Method[Any]:
    assert isinstance(trainer.method, Method)
    return trainer.method


def save(state: GroupState, trainer: Trainer, folders: list[SegmentFolder]) -> None:
    lanes = {(run, 0): {"time": torch.tensor(run).numpy()} for run in range(2)}
    snapshot.save(state, trainer, method_of(trainer), folders=folders, lanes=lanes)


def new_state() -> GroupState:
    return GroupState([RunState(), RunState()])


def test_updates_after_it_are_the_same(make_trainer: Make, folders: list[SegmentFolder]) -> None:
    first, state = make_trainer([0, 1]), new_state()
    first.train(3)
    state.step, state.runs[1].counts.episodes = 30, 7
    state.runs[1].diverged, state.runs[1].last_success, first.retrain_updates = True, 0.25, 2
    state.earlier_seconds = 1000.0
    older, newest = torch.zeros(2, 3), torch.ones(2, 3)  # with a lag
    state.acting.extend([older, newest])
    save(state, first, folders)
    other, found = make_trainer([0, 1]), new_state()
    other.train(5)  # whatever it has done is replaced, its transitions too
    other.replay.add(0, torch.zeros(2, 200, 29))
    lanes = snapshot.restore(found, other, method_of(other), folders=folders, lanes=1)
    assert (found.step, found.runs[1].counts.episodes, other.updates) == (30, 7, 3)
    assert [int(lanes[run, 0]["time"]) for run in range(2)] == [0, 1]
    assert [run.diverged for run in found.runs] == [False, True]
    assert found.runs[1].last_success == 0.25 and other.retrain_updates == 2
    assert other.replay.added == first.replay.added
    assert 1000 <= found.seconds < 2000
    [waiting] = found.acting  # the newest are the trainer's
    assert torch.equal(waiting, older)
    for trainer in (first, other):
        trainer.train(2)
    for name, x in first.state().items():
        assert torch.equal(x, other.state()[name]), name


def test_a_statistic_added_since_begins_with_the_next_row(
    make_trainer: Make, folders: list[SegmentFolder]
) -> None:
    """The last one: of the updates before the snapshot it has no values."""
    first, other, state = make_trainer([0, 1]), make_trainer([0, 1]), new_state()
    first.train(3)
    save(state, first, folders)
    for folder in folders:
        tensors, record = checkpoint.load(folder.snapshot)
        tensors["statistics"] = tensors["statistics"][:, :-1].clone()
        checkpoint.save(folder.snapshot, tensors, record)
    snapshot.restore(new_state(), other, method_of(other), folders=folders, lanes=1)
    rows = []
    for trainer in (first, other, first, other):
        trainer.train(2)
        rows.append(trainer.statistics.take())
    *known, last = STATISTICS
    assert [rows[0][name] for name in known] == [rows[1][name] for name in known]
    assert all(map(math.isnan, rows[1][last])) and rows[2] == rows[3]


def test_only_new_transitions_are_written(make_trainer: Make, folders: list[SegmentFolder]) -> None:
    trainer, state = make_trainer([0, 1], rows=50), new_state()
    trainer.replay.capacity = 50
    save(state, trainer, folders)
    whole = set(state.runs[0].snapshot_files)
    save(state, trainer, folders)
    assert set(state.runs[0].snapshot_files) == whole == {"replay-0-0.npy"}
    trainer.replay.add(0, torch.ones(2, 5, 29))
    save(state, trainer, folders)
    assert set(state.runs[0].snapshot_files) - whole == {"replay-0-50.npy"}


def test_a_second_session_s_snapshot_has_the_transitions_of_the_first(
    make_trainer: Make, folders: list[SegmentFolder]
) -> None:
    trainers = [make_trainer([0, 1], rows=50) for _ in range(3)]
    first, second, third = trainers
    save(new_state(), first, folders)
    state = new_state()
    snapshot.restore(state, second, method_of(second), folders=folders, lanes=1)
    for trainer in (first, second):
        trainer.replay.add(0, torch.ones(2, 5, 29))
    save(state, second, folders)
    snapshot.restore(new_state(), third, method_of(third), folders=folders, lanes=1)
    assert set(state.runs[0].snapshot_files) == {"replay-0-0.npy", "replay-0-50.npy"}
    assert torch.equal(third.replay.stored(0), first.replay.stored(0))


def test_rows_written_after_it_are_cut_off(
    make_trainer: Make, folders: list[SegmentFolder]
) -> None:
    trainer, state = make_trainer([0, 1]), new_state()
    table = folders[0].path / "evals.csv"
    table.write_text("step\n10\n")
    save(state, trainer, folders)
    table.write_text("step\n10\n20\n")
    snapshot.restore(new_state(), trainer, method_of(trainer), folders=folders, lanes=1)
    assert table.read_text() == "step\n10\n"


def test_runs_continue_together_from_the_same_step(
    make_trainer: Make, folders: list[SegmentFolder]
) -> None:
    trainer, state = make_trainer([0, 1]), new_state()
    file = folders[0].snapshot
    assert snapshot_step(folders[0]) == 0
    state.step = 40
    save(state, trainer, folders)
    assert snapshot_step(folders[0]) == 40
    checkpoint.save(file, {}, {"step": "x"})
    with pytest.raises(Damaged, match="step is 'x'"):
        snapshot_step(folders[0])
    assert saved_step(folders[0]) == 0
    snapshot.discard(file)
    assert snapshot_step(folders[0]) == 0 and not file.parent.exists()


def test_who_lost_a_claim_saves_nothing(
    make_trainer: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heir's snapshot must stay as it is."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    mine = [SegmentFolder(tmp_path / str(run), "mine") for run in range(2)]
    for folder in mine:
        folder.path.mkdir()
        claim_elsewhere(folder)
    with pytest.raises(ClaimLost, match="another process has taken it"):
        save(new_state(), make_trainer([0, 1]), mine)
    assert [file.name for file in tmp_path.glob("*/*")] == ["claim.json"] * 2

"""What the memory holds, and how often each part is drawn."""

import pytest
import torch
from scipy import stats

from cwbench.learner.compiler import compiled
from cwbench.learner.replay import OldTask, Replay, draw_equally, pick, pick_of_all, take_rows
from cwbench.learner.rng import Streams
from cwbench.spec.errors import UserError
from cwbench.spec.transition import Dims

WIDTH = 2 * 3 + 2 + 1  # three observations, two actions


def rows(values: list[float]) -> torch.Tensor:
    """Transitions that are recognised by their number."""
    return torch.tensor(values, dtype=torch.float32)[:, None].expand(-1, WIDTH).clone()


def make(runs: int, capacity: int, old: dict[int, OldTask] | None = None, live: int = 0) -> Replay:
    streams = Streams(list(range(runs)), live, torch.device("cpu"))
    return Replay(runs, capacity, Dims(3, 2), streams, live=[live], old=old)


def test_memory_is_first_in_first_out_per_run() -> None:
    replay = make(2, 5)
    for start in (0, 3, 6):
        replay.add(0, torch.stack([rows([start, start + 1, start + 2]) + 100 * r for r in (0, 1)]))
    assert sorted(replay.stored(0)[0, :, 0].tolist()) == [4, 5, 6, 7, 8]
    assert sorted(replay.stored(0)[1, :, 0].tolist()) == [104, 105, 106, 107, 108]
    drawn = replay.sample(200).reward  # of the five that are there, in each run
    assert [set(own.tolist()) for own in drawn] == [{*range(4, 9)}, {*range(104, 109)}]


def test_a_replay_that_became_shorter_cannot_be_saved() -> None:
    """Snapshots add what is new; of what a method takes away, they would know nothing."""
    replay = make(1, 5)
    replay.add(0, rows([0, 1, 2])[None])
    replay.set_added(0, 2)
    with pytest.raises(UserError, match="has 2 transitions, fewer than the 3 of the last snapshot"):
        replay.since(0, 0, start=3)


def test_fields_come_back_as_they_went_in() -> None:
    replay = make(1, 4)
    replay.add(0, torch.arange(WIDTH, dtype=torch.float32).view(1, 1, WIDTH))
    batch = replay.sample(2)
    assert batch.obs[0, 0].tolist() == [0, 1, 2]
    assert batch.action[0, 0].tolist() == [3, 4]
    assert batch.reward[0, 0].item() == 5
    assert batch.next_obs[0, 0].tolist() == [6, 7, 8]
    assert batch.weight[0].tolist() == [0.5, 0.5]


def old_tasks() -> dict[int, OldTask]:
    """Two runs that share the first task's memory and have their own of the second."""
    first = OldTask(
        [rows([0, 1, 2, 3])], [0, 0], [{"note": torch.tensor([[9.0], [8.0], [7.0], [6.0]])}]
    )
    second = OldTask(
        [rows([10, 11, 12, 13]), rows([20, 21, 22, 23])],
        [1, 0],
        [{"note": torch.full((4, 1), 5.0)}, {"note": torch.full((4, 1), 4.0)}],
    )
    return {0: first, 1: second}


def test_runs_draw_from_their_own_ancestors() -> None:
    replay = make(2, 8, old_tasks(), live=2)
    assert replay.rows.shape[0] == 4 + 8 + 2 * 8  # the shared memory is there once
    batch = replay.sample_old(400)
    assert batch.tasks.blocks == ((0, 200), (1, 200))
    assert (
        set(batch.reward[0, :200].tolist()) == {0, 1, 2, 3} == set(batch.reward[1, :200].tolist())
    )
    assert set(batch.reward[0, 200:].tolist()) == {20, 21, 22, 23}
    assert set(batch.reward[1, 200:].tolist()) == {10, 11, 12, 13}
    note = replay.annotations_of("note", batch.rows)
    assert torch.equal(note[0, :200, 0], 9 - batch.reward[0, :200])
    assert note[0, 200:].eq(4).all() and note[1, 200:].eq(5).all()


def test_a_draw_over_everything_follows_the_sizes_of_the_memories() -> None:
    """As in Perfect Memory: t steps into task k, the current task has a share of t / (k n + t)."""
    replay = make(2, 8, old_tasks(), live=2)
    replay.add(2, torch.stack([rows([30, 31]), rows([40, 41])]))
    batch = replay.sample_all(30_000)
    for run, rewards in enumerate(
        ([0, 1, 2, 3, 20, 21, 22, 23, 30, 31], [0, 1, 2, 3, 10, 11, 12, 13, 40, 41])
    ):
        counts = [(batch.reward[run] == value).sum().item() for value in rewards]
        assert sum(counts) == 30_000
        assert stats.chisquare(counts).pvalue > 1e-3
        task = torch.tensor([0] * 4 + [1] * 4 + [2] * 2)
        for value, wanted in zip(rewards, task.tolist(), strict=True):
            assert batch.tasks.index[run][batch.reward[run] == value].eq(wanted).all()


def test_old_tasks_of_different_sizes_are_drawn_whole() -> None:
    """Two transitions of the first task and four of the second; five rows are three of each."""
    short = OldTask([rows([0, 1])], [0, 0])
    replay = make(2, 8, {**old_tasks(), 0: short}, live=2)
    assert replay.sample_old_once(5, "few").tasks.blocks == ((0, 3), (1, 3))
    batch = replay.sample_old(400)
    assert set(batch.reward[0, :200].tolist()) == {0, 1}
    assert set(batch.reward[0, 200:].tolist()) == {20, 21, 22, 23}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler has several of its own
def test_a_compiled_replay_picks_the_same() -> None:
    plain, fast = make(2, 8, old_tasks(), live=2), make(2, 8, old_tasks(), live=2)
    fast._pick, fast._pick_of_all = compiled(pick, "cpu"), compiled(pick_of_all, "cpu")
    for replay in (plain, fast):
        replay.add(2, torch.stack([rows([30, 31, 32]), rows([40, 41, 42])]))
    for draw in (
        lambda replay: replay.sample(7),
        lambda replay: replay.sample_old(7),
        lambda replay: replay.sample_both(7, 3.0),
        lambda replay: replay.sample_all(7),
    ):
        one, other = draw(plain), draw(fast)
        assert one.tasks.blocks == other.tasks.blocks
        assert torch.equal(one.tasks.index, other.tasks.index)
        for name in ("obs", "action", "reward", "next_obs", "weight", "rows"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_a_memory_of_a_later_task_alone_knows_its_position() -> None:
    replay = make(1, 4, live=2)
    replay.add(2, rows([30, 31])[None])
    assert replay.sample_all(6).tasks.index.eq(2).all()


def test_old_and_new_together_keep_blocks_and_weights() -> None:
    replay = make(2, 8, old_tasks(), live=2)
    replay.add(2, torch.stack([rows([30, 31]), rows([40, 41])]))
    batch = replay.sample_both(4, old_weight=3.0)
    assert batch.tasks.blocks == ((0, 2), (1, 2), (2, 4))
    assert batch.weight[0].tolist() == [0.75] * 4 + [0.25] * 4
    old, new = replay.sample_old(4), replay.sample(4)
    assert torch.equal(batch.rows, torch.cat([old.rows, new.rows], 1))
    assert torch.equal(batch.reward, torch.cat([old.reward, new.reward], 1))


def test_what_was_added_since_can_be_put_back() -> None:
    source, copy = make(2, 5), make(2, 5)
    source.add(0, torch.stack([rows([0, 1, 2]), rows([10, 11, 12])]))
    parts = [(run, *source.since(0, run, 0)) for run in (0, 1)]
    source.add(0, torch.stack([rows([3, 4, 5, 6]), rows([13, 14, 15, 16])]))
    parts += [(run, *source.since(0, run, 3)) for run in (0, 1)]
    for run, first, part in parts:
        copy.put_back(0, run, first, part)
    copy.set_added(0, source.added[0])
    assert torch.equal(source.rows, copy.rows) and torch.equal(source.sizes, copy.sizes)


def test_large_memories_draw_the_rows_that_small_ones_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = make(2, 8, old_tasks(), live=2)
    monkeypatch.setattr("cwbench.learner.replay.LARGE", 16)  # two old tasks of 4, and 8 new ones
    large = make(2, 8, old_tasks(), live=2)
    assert (small.large, large.large) == (False, True)
    for replay in (small, large):
        replay.add(2, torch.stack([rows([30, 31]), rows([40, 41])]))
    for draw in (lambda replay: replay.sample_all(50), lambda replay: replay.sample_both(50)):
        assert torch.equal(draw(small).rows, draw(large).rows)


def test_a_methods_memory_is_drawn_from_equally() -> None:
    """Five rows of each of three tasks; at least ten rows of three tasks are twelve."""
    streams = Streams([0, 1], 3, torch.device("cpu"))
    streams.seek(0)
    drawn = draw_equally(streams, "mine", 10, tasks=3, kept=5)
    assert torch.equal(drawn // 5, torch.arange(3).repeat_interleave(4).expand(2, -1))
    memory = torch.arange(30.0).view(2, 15, 1)  # run 1's begin at 15
    own = torch.tensor([[0.0], [15.0]])
    assert torch.equal(take_rows(memory, drawn)[..., 0], drawn + own)

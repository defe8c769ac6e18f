"""Perfect Memory: shares of a batch, and the environments that online replay steps; multi-task."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from cwbench.envs.pointmass import PointMass
from cwbench.learner.method import Method
from cwbench.learner.replay import OldTask, Replay
from cwbench.learner.rng import Streams
from cwbench.learner.trainer import Trainer
from cwbench.methods.multitask import Multitask, MultitaskConfig
from cwbench.methods.perfect_memory import PerfectMemory, PerfectMemoryConfig
from cwbench.rollout.episodes import generator
from cwbench.spec.config import PointMassConfig, SACConfig
from cwbench.spec.transition import Dims
from cwbench.store import checkpoint

HORIZON = 20
TASKS = ("reach-0-1", "reach-2-1000", "reach-4-10")


def memory(old: int, capacity: int) -> Replay:
    streams = Streams([0], 1, torch.device("cpu"))
    kept = {0: OldTask([torch.zeros(old, 4)], [0])}
    return Replay(1, capacity, Dims(1, 1), streams, live=[1], old=kept)


@pytest.mark.parametrize(("step", "share"), [(1_001, 0.001), (50_000, 0.048), (1_000_000, 0.5)])
def test_published_shares_of_the_new_task(step: int, share: float) -> None:
    replay = memory(1_000_000, 1_000_000)
    replay.set_added(1, step)
    assert step / (1_000_000 + step) == pytest.approx(share, rel=0.01)
    drawn = replay.sample_all(200_000).tasks.index
    # Four standard deviations of a binomial share.
    assert (drawn == 1).float().mean().item() == pytest.approx(
        step / (1_000_000 + step), abs=4 * (share * (1 - share) / 200_000) ** 0.5
    )


def test_every_transition_is_equally_likely() -> None:
    replay = memory(30, 30)
    replay.set_added(1, 10)
    counts = torch.zeros(60)
    for update in range(100):
        replay.streams.seek(update)
        batch = replay.sample_all(100)
        counts += torch.bincount(batch.rows.flatten(), minlength=60)
        assert torch.equal(batch.tasks.index, (batch.rows >= 30).long())
    assert counts[40:].sum() == 0  # not yet filled
    assert stats.chisquare(counts[:40].numpy()).pvalue > 0.001


def test_the_method_draws_from_everything_that_is_stored(make_trainer: Callable[..., Any]) -> None:
    """20 and 30 transitions of two old tasks and 10 of the new one: each as often as any other."""
    trainer = make_trainer([0], position=2)
    kept = {task: OldTask([torch.zeros(rows, 29)], [0]) for task, rows in enumerate((20, 30))}
    trainer.replay = Replay(1, 40, Dims(12, 4), trainer.streams, live=[2], old=kept)
    trainer.replay.set_added(2, 10)
    method = PerfectMemory(PerfectMemoryConfig(), trainer)
    drawn = []
    for update in range(60):
        trainer.streams.seek(update)
        drawn.append(method.sample_batch(100))
    counts = torch.bincount(torch.cat([batch.rows.flatten() for batch in drawn]), minlength=60)
    assert len(counts) == 60 and stats.chisquare(counts.numpy()).pvalue > 0.001
    tasks = torch.bincount(torch.cat([batch.tasks.index.flatten() for batch in drawn]))
    assert tasks.tolist() == [counts[:20].sum(), counts[20:50].sum(), counts[50:].sum()]


def test_old_temperatures_learn(make_trainer: Callable[..., Trainer]) -> None:
    trainer = make_trainer([0], position=1, sac=SACConfig(batch_size=32))
    kept = {0: OldTask([torch.randn(40, 29, generator=torch.Generator().manual_seed(0))], [0])}
    replay = Replay(1, 40, Dims(12, 4), trainer.streams, live=[1], old=kept)
    replay.add(1, torch.randn(1, 40, 29, generator=torch.Generator().manual_seed(1)))
    trainer.replay, trainer.method = replay, PerfectMemory(PerfectMemoryConfig(), trainer)
    trainer.train(3)
    assert trainer.params["log_alpha"].ne(1).tolist() == [[True, True]]


def assert_rows_of(task: str, rows: torch.Tensor) -> None:
    """Rewards are those of this task, which has its own goal and scale."""
    env = PointMass(task, PointMassConfig(horizon=HORIZON))
    position = rows[:, 17:19].double().numpy()
    distance = np.linalg.norm(position - env.goal, axis=1)
    expected = env.scale * ((distance < 0.15) - distance)
    assert rows[:, 16].numpy() == pytest.approx(expected, rel=1e-3, abs=1e-3 * env.scale)


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, torch.Tensor]]:
    """What the live positions hold at the end of each task: position -> [R, n, F]."""
    seen: list[dict[int, torch.Tensor]] = []

    def spy(self: Method[Any], task: int) -> None:
        replay = self.trainer.replay
        seen.append({p: replay.stored(p).clone() for p in replay.live})

    for method in (PerfectMemory, Multitask):
        monkeypatch.setattr(method, "on_task_end", spy)
    return seen


def resources(store: Any, segments: Sequence[Any]) -> list[dict[str, int]]:
    texts = [(store.folder(s).path / "status.json").read_text() for s in segments]
    return [json.loads(text)["resources"] for text in texts]


def test_online_replay_steps_old_environments(
    toy_run: Any, tmp_path: Path, memories: list[dict[int, torch.Tensor]]
) -> None:
    store, plan, _ = toy_run(
        tmp_path, "pm", tasks=TASKS, seeds=(0, 1), options={"replay_mode": "online"}
    )
    steps = 60
    assert [sorted(memory) for memory in memories] == [[0], [0, 1], [0, 1, 2]]
    for memory in memories:
        for position, rows in memory.items():
            assert rows.shape[1] == steps
            for run in range(2):
                assert_rows_of(TASKS[position], rows[run])
    used = resources(store, plan.segments)
    assert [u["train_steps"] for u in used] == [steps] * 6
    expected = [steps * segment.position for segment in plan.segments]
    assert [u["extra_steps"] for u in used] == expected
    assert not any(store.folder(s).replay.exists() for s in plan.segments)  # nothing to keep


def test_only_the_task_itself_is_explored(
    toy_run: Any, tmp_path: Path, memories: list[dict[int, torch.Tensor]]
) -> None:
    toy_run(tmp_path, "pm", tasks=TASKS[:2], options={"replay_mode": "online"})
    second = memories[1]
    for lane, position in ((0, 1), (1, 0)):
        uniform = generator(0, "explore", 1, lane, 0).random((HORIZON, 4), np.float32) * 2 - 1
        same = (second[position][0, :HORIZON, 12:16].numpy() == uniform).all(1)
        assert same.tolist() == [lane == 0] * 11 + [False] * 9  # 10 start steps, and one more


def test_online_runs_continue_and_share_fleets_exactly(toy_run: Any, tmp_path: Path) -> None:
    """The registry's contract covers one lane; this is the same for several."""
    options = {"replay_mode": "online"}
    few = {"buffer_size": 45}  # memories turn over
    arguments = {"tasks": TASKS, "options": options, "sac": few}
    whole, plan, _ = toy_run(tmp_path / "whole", "pm", seeds=(0, 1), **arguments)
    alone, own, _ = toy_run(tmp_path / "alone", "pm", seeds=(1,), **arguments)
    for chunks in (3, 12):
        again = {"stop_after": chunks, "groups": 2, "snapshot_seconds": 0}
        _, _, outcome = toy_run(tmp_path / "parts", "pm", seeds=(0, 1), **arguments, **again)
        assert outcome.interrupted
    parts, _, _ = toy_run(tmp_path / "parts", "pm", seeds=(0, 1), **arguments)
    for other, segments in ((alone, own.segments), (parts, plan.segments)):
        for segment in segments:
            a, b = (checkpoint.load(store.folder(segment).end)[0] for store in (whole, other))
            assert all(torch.equal(a[name], b[name]) for name in a)
    used = resources(parts, plan.segments)
    assert used == resources(whole, plan.segments)


def test_multitask_cycles_over_the_tasks(
    toy_run: Any, tmp_path: Path, memories: list[dict[int, torch.Tensor]]
) -> None:
    store, plan, _ = toy_run(tmp_path, "multitask", tasks=TASKS, seeds=(0, 1))
    assert len(plan.segments) == 2 and plan.segments[0].steps == 3 * 60
    [memory] = memories
    assert {p: rows.shape[1] for p, rows in memory.items()} == {0: 60, 1: 60, 2: 60}
    for position, rows in memory.items():
        for run in range(2):
            assert_rows_of(TASKS[position], rows[run])
    lines = (store.folder(plan.segments[0]).path / "evals.csv").read_text().splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {"0", "1", "2"}
    assert resources(store, plan.segments)[0]["train_steps"] == 180


def test_multitask_explores_as_long_as_a_sequence_does(make_trainer: Any) -> None:
    """10,001 uniform steps in each of three tasks."""
    method = Multitask(MultitaskConfig(), make_trainer([0], position=2))
    assert method.exploration(0).steps == 3 * 10_001


def test_multitask_normalises_by_the_targets_themselves(make_trainer: Any) -> None:
    """Targets of 10 are 8 above a mean of 2, whatever the std."""
    trainer = make_trainer([0])
    trainer.value["mean"].fill_(2)
    trainer.value["std"].fill_(4)
    method = Multitask(MultitaskConfig(beta=0.1), trainer)
    method.after_update(trainer.replay.sample(6), torch.full((1, 6), 10.0))
    assert trainer.value["mean"].item() == pytest.approx(2 + 0.1 * 8)


def test_multitask_learns_every_head_and_normalises_on_request(
    toy_run: Any, tmp_path: Path
) -> None:
    for popart in (False, True):
        store, plan, _ = toy_run(
            tmp_path / str(popart), "multitask", tasks=TASKS, options={"popart": popart}
        )
        end = checkpoint.load(store.folder(plan.segments[0]).end)[0]
        assert end["trainer/log_alpha"].ne(1).all()
        assert end["trainer/value.std"].ne(1).tolist() == [[popart] * 3]

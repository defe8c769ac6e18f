"""A group against explicit loops."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cwbench.learner.method import OF_POSITIONS, Method
from cwbench.learner.replay import Replay
from cwbench.learner.trainer import Trainer
from cwbench.methods.finetuning import FineTuning
from cwbench.rollout.episodes import Envs, Lane, LaneSpec
from cwbench.rollout.numpy_policy import Actor
from cwbench.spec.schedule import milestones
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims
from cwbench.store import checkpoint
from cwbench.store.runs import load_runs

LAG = {"tasks": ("reach-0-1",), "options": {"lag": 1}}


def delayed(segment: Segment) -> dict[str, Tensor]:
    """Plain SAC in one process; each chunk is collected with weights one chunk old."""
    setup, dims = segment.setup, Dims(12, 4)
    trainer = Trainer(
        [segment.seed], 0, dims=dims, sac=setup.sac, network=setup.network,
        schedule=setup.schedule, device=torch.device("cpu"),
    )  # fmt: skip
    method = Method(setup.options, trainer)
    trainer.begin(method, Replay(1, segment.steps, dims, trainer.streams, live=[0]))
    method.begin_task(0)
    trainer.reset_optimizer()
    layout = trainer.policy.layout(1)
    explore = trainer.uniform_exploration().steps
    acting = np.zeros(layout.size, np.float32)
    spec = LaneSpec(0, segment.seed, 0, 0, ((0, "reach-0-1"),), explore, ())
    lane = Lane(spec, Envs(setup.env), Actor(layout, acting))

    def weights() -> Tensor:
        found = method.policy_weights(0)
        return torch.cat([found[name].flatten(1) for name in layout.shapes], 1)[0]

    older = newest = weights()
    step = 0
    for milestone in milestones(setup.schedule, segment.steps):
        acting[:] = older
        chunk = np.zeros((milestone.step - step, trainer.replay.width), np.float32)
        lane.collect(chunk)
        older = newest
        trainer.replay.add(0, torch.from_numpy(chunk)[None])
        trainer.train(milestone.updates)
        newest, step = weights(), milestone.step
    return trainer.state()


def test_lag_collects_with_weights_one_chunk_old(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path / "lag", **LAG)
    end = checkpoint.load(store.folder(plan.segments[0]).end)[0]
    found, expected = checkpoint.under("trainer", end), delayed(plan.segments[0])
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name
    store, plain, _ = toy_run(tmp_path / "plain", tasks=LAG["tasks"])
    end = checkpoint.load(store.folder(plain.segments[0]).end)[0]
    name = "actor.0.weight"
    assert not torch.equal(end[f"trainer/{name}"], expected[name])
    assert plain.segments[0].id != plan.segments[0].id
    assert "lag" not in plain.segments[0].record()["schedule"]


@pytest.mark.parametrize("how", [{"stop_after": 4}, {"snapshot_seconds": 0}])
def test_lag_resumes_exactly(how: dict[str, Any], toy_run: Any, tmp_path: Path) -> None:
    """A snapshot keeps the older weights, and pauses change no number."""
    store, plan, _ = toy_run(tmp_path / "whole", **LAG)
    toy_run(tmp_path / "paused", **LAG, **how)
    paused, _, outcome = toy_run(tmp_path / "paused", **LAG)
    assert outcome.good
    assert not list(tmp_path.rglob("state.safetensors"))  # of no use any more
    ends = [checkpoint.load(s.folder(plan.segments[0]).end)[0] for s in (store, paused)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    first, second = (load_runs(tmp_path / name).evals for name in ("whole", "paused"))
    assert first.equals(second)


@pytest.mark.parametrize("hook", OF_POSITIONS)
def test_a_hook_that_draws_global_random_numbers_fails(
    hook: str, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainings would have different numbers under one id."""

    def drawing(self: FineTuning, position: int) -> Any:
        torch.rand(1)
        return getattr(Method, hook)(self, position)

    monkeypatch.setattr(FineTuning, hook, drawing)
    [message] = toy_run(tmp_path, tasks=("reach-0-1",)).outcome.failed.values()
    assert f"FineTuning.{hook} draws from the global generator of torch" in message


def test_a_task_begins_without_the_optimisers_memory_of_what_came_before(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method may have used it at the task's start."""

    def use(self: FineTuning, position: int) -> None:
        for moments in self.trainer.optimizer.mean.values():
            moments += 1

    ends = []
    for name in ("plain", "used"):
        store, plan, _ = toy_run(tmp_path / name, tasks=("reach-0-1",))
        ends.append(checkpoint.load(store.folder(plan.segments[0]).end)[0])
        monkeypatch.setattr(FineTuning, "on_task_start", use)
    assert all(torch.equal(x, ends[1][name]) for name, x in ends[0].items())


def test_what_was_not_finite_once_is_not_continued_from(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations of seed 0 looked at such an actor, though all that is kept is finite."""

    def evaluated(self: FineTuning, position: int) -> dict[str, Tensor]:
        weights = dict(self.policy_weights(position))
        if self.trainer.updates < 30:
            name = next(iter(weights))
            weights[name] = weights[name].clone()
            weights[name][0] = torch.nan
        return weights

    monkeypatch.setattr(FineTuning, "evaluated_weights", evaluated)
    store, plan, outcome = toy_run(tmp_path, seeds=(0, 1), tasks=("reach-0-1",))
    states = {segment.seed: store.folder(segment).state for segment in plan.segments}
    assert states == {0: "diverged", 1: "done"} and len(outcome.diverged) == 1
    ended = {segment.seed: store.folder(segment).end.exists() for segment in plan.segments}
    assert ended == {0: False, 1: True}


def test_rows_of_an_attempt_without_a_snapshot_are_cut_off(toy_run: Any, tmp_path: Path) -> None:
    """It was killed when all but the last status was written."""
    options = {"retrain_updates": 6, "retrain_log_every": 3}
    tables = ("evals.csv", "train.csv", "retraining.csv")
    found = []
    for _ in range(2):
        store, plan, outcome = toy_run(
            tmp_path, "packnet", tasks=("reach-0-1", "reach-2-1"), options=options
        )
        folder = store.folder(plan.segments[0])
        found.append([(folder.path / name).read_text().count("\n") for name in tables])
        folder.end.unlink()
        folder.set_status("pending")
    assert found[0] == found[1] == [1 + 3, 1 + 3, 1 + 2] and outcome.good

"""Divergence of policies against the textbook; recorded states are what the policy was."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import tensor

from cwbench.learner.compiler import compiled
from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import make_policy
from cwbench.learner.trainer import Trainer
from cwbench.methods import _cloning
from cwbench.methods._cloning import policy_kl
from cwbench.spec.config import NetworkConfig

# KL(N(0, 1) || N(1, 2)) and the other way round, derived on paper.
FORWARD = math.log(2) + (1 + 1) / 8 - 1 / 2
BACKWARD = -math.log(2) + (4 + 1) / 2 - 1 / 2


@pytest.mark.parametrize(
    ("direction", "reduce", "expected"),
    [
        ("old_new", "sum", FORWARD + 0.5),
        ("old_new", "mean", (FORWARD + 0.5) / 2),
        ("new_old", "sum", BACKWARD + 0.5),
        ("new_old", "mean", (BACKWARD + 0.5) / 2),
    ],
)
def test_policy_kl_knows_direction_and_reduction(
    direction: _cloning.Direction, reduce: _cloning.Reduce, expected: float
) -> None:
    # Two action dimensions; in the second both are of std 1, and their means differ by 1.
    old = tensor([0.0, 0.0, 0.0, 0.0]).view(1, 1, 4)
    new = tensor([1.0, 1.0, math.log(2), 0.0]).view(1, 1, 4)
    assert policy_kl(new, old, direction=direction, reduce=reduce).item() == pytest.approx(expected)


def test_extreme_policies_give_finite_gradients() -> None:
    narrow = torch.full((1, 1, 2), -20.0, requires_grad=True)
    wide = tensor([10.0, 2.0]).view(1, 1, 2)
    for direction in ("old_new", "new_old"):
        kl = policy_kl(narrow, wide, direction=direction, reduce="sum")
        assert torch.autograd.grad(kl.sum(), narrow)[0].isfinite().all()


def test_whole_memory_is_recorded_in_row_order(
    make_trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer([3, 4], rows=50)
    whole = _cloning.record_memory(trainer)
    monkeypatch.setattr(_cloning, "FORWARD", 7)
    assert torch.allclose(_cloning.record_memory(trainer), whole, atol=1e-6)
    for run in range(2):
        obs = trainer.replay.stored(0)[:, 13:14, :12]
        mean, log_std = trainer.policy(
            trainer.params, obs, TaskIndex.single(0, 2, 1, torch.device("cpu"))
        )
        assert torch.allclose(whole[run, 13], torch.cat([mean, log_std], -1)[run, 0], atol=1e-6)


def test_recorded_states_keep_their_task_and_policy(make_trainer: Callable[..., Trainer]) -> None:
    first, second = make_trainer([0, 1], rows=30), make_trainer([5, 6], position=1, rows=30)
    first.train(2)  # its critics are no longer their targets
    states = _cloning.record_states(first, 150)
    assert states["obs"].shape == (2, 150, 12)
    assert not torch.equal(states["obs"][:, :50], states["obs"][:, 100:])  # two draws
    tasks = TaskIndex.single(0, 2, 150, torch.device("cpu"))
    q = first.q(first.params, states["obs"], states["action"], tasks).movedim(1, -1)
    assert torch.allclose(states["q"], q, atol=1e-6)
    for run in range(2):  # every state is one of the memory's, and nearly all of those come up
        known = {tuple(x) for x in first.replay.stored(0)[run, :, :12].tolist()}
        drawn = {tuple(x) for x in states["obs"][run].tolist()}
        assert drawn <= known and len(drawn) > 25
    states = _cloning.extended(states, _cloning.record_states(second, 150))
    third = make_trainer([0, 1], position=2)
    drawn_states, tasks = _cloning.sample_states(third, states, 41)
    assert tasks.blocks == ((0, 21), (1, 21))  # at least as many as asked for, equally many each
    for rows, trainer in ((slice(0, 21), first), (slice(21, 42), second)):
        own = TaskIndex.single(trainer.position, 2, 21, torch.device("cpu"))
        now = _cloning.policy_of(trainer, drawn_states["obs"][:, rows], own)
        assert torch.allclose(drawn_states["policy"][:, rows], now, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
def test_compiled_divergence_has_the_same_gradients() -> None:
    """In float64: in float32 a unit at the kink of its activation may fall on either side."""
    policy, draws = (
        make_policy(5, 2, NetworkConfig(width=16, layers=3)),
        torch.Generator().manual_seed(0),
    )
    shapes = policy.network.shapes(2)
    params = {
        name: torch.randn(2, *shape, generator=draws, dtype=torch.float64)
        .mul_(0.3)
        .requires_grad_()
        for name, shape in shapes.items()
    }
    obs = torch.randn(2, 12, 5, generator=draws, dtype=torch.float64)
    old = torch.randn(2, 12, 4, generator=draws, dtype=torch.float64)
    tasks = TaskIndex.join([TaskIndex.single(task, 2, 6, obs.device) for task in (0, 1)])
    found = []
    for function in (_cloning.mean_kl, compiled(_cloning.mean_kl, "cpu")):
        kl = function(policy, params, obs, tasks, old, direction="new_old", reduce="mean")
        found.append((kl, *torch.autograd.grad(kl.sum(), list(params.values()))))
    for fast, plain in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-12)

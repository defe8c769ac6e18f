"""Gradients written by hand against autograd on the losses as the paper writes them."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench import compiling, sac
from cwbench.config import ScheduleConfig
from cwbench.methods import METHODS
from cwbench.nets import Network, Policy, Tasks, make_critic, make_policy
from cwbench.replay import Batch
from cwbench.runaxis import per_run_sum
from cwbench.trainer import Trainer

Params = Mapping[str, Tensor]
RUNS, ROWS, TASKS, OBS, ACT = 2, 12, 3, 5, 3


def plain_losses(
    policy: Policy,
    critic: Network,
    params: Params,
    value: Params,
    batch: Batch,
    wanted: Tensor,
    noise: Tensor,
    target_entropy: float,
) -> sac.Losses:
    """The losses for autograd, `detach` where a loss does not move a parameter."""
    tasks, weight = batch.tasks, batch.weight
    action, log_density = sac.act(policy, params, batch.obs, tasks, noise)
    frozen = {name: p.detach() for name, p in params.items()}
    alpha = tasks.of(frozen["log_alpha"]).exp()
    best = sac.values(critic, frozen, batch.obs, action, tasks).amin(1)
    normalised = (wanted - tasks.of(value["mean"])) / tasks.of(value["std"])
    q = sac.values(critic, params, batch.obs, batch.action, tasks)
    entropy = -log_density.detach()
    return sac.Losses(
        per_run_sum(weight * (alpha * log_density - best)),
        0.5 * per_run_sum(weight * ((q - normalised.unsqueeze(1)) ** 2).sum(1)),
        per_run_sum(weight * tasks.of(params["log_alpha"]) * (entropy - target_entropy)),
        per_run_sum(weight * q[:, 0].detach()),
        per_run_sum(weight * entropy),
    )


def differentiate(made: sac.Losses, extra: Tensor | float, params: Params) -> dict[str, Tensor]:
    total = (made.actor + made.critic + made.alpha + extra).sum()
    return dict(zip(params, torch.autograd.grad(total, list(params.values())), strict=True))


def tasks_of(kind: str) -> Tasks:
    index = torch.randint(TASKS, (RUNS, ROWS), generator=torch.Generator().manual_seed(3))
    blocks: dict[str, tuple[tuple[int, int], ...]] = {
        "one block": ((1, ROWS),),
        "blocks": ((2, 6), (0, 4), (1, 2)),
        "a task twice": ((1, 5), (0, 3), (1, 4)),
        "mixed": (),
    }
    if blocks[kind]:
        index = torch.tensor([task for task, rows in blocks[kind] for _ in range(rows)])
        index = index.expand(RUNS, ROWS)
    return Tasks(index, blocks[kind])


def example(actor_heads: int, critic_heads: int, kind: str) -> tuple[Any, ...]:
    """Arguments of `sac.gradients` with random numbers of double precision everywhere."""
    policy, critic = (
        make_policy(OBS, ACT, 8, 2, actor_heads),
        make_critic(OBS, ACT, 8, 2, critic_heads),
    )
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    shapes = {**policy.network.shapes(TASKS), **critic.shapes(TASKS), "log_alpha": (TASKS,)}
    params = {name: (0.5 * normal(RUNS, *s)).requires_grad_() for name, s in shapes.items()}
    value = {"mean": normal(RUNS, TASKS), "std": normal(RUNS, TASKS).exp()}
    tasks = tasks_of(kind)
    table = [normal(RUNS, ROWS, width) for width in (OBS, ACT, OBS)]
    weight = normal(RUNS, ROWS).exp()
    batch = Batch(
        table[0], table[1].tanh(), normal(RUNS, ROWS), table[2], tasks, weight, tasks.index
    )
    return policy, critic, params, value, batch, normal(RUNS, ROWS), normal(RUNS, ROWS, ACT), -1.5


def assert_same(found: Params, expected: Params, tolerance: float) -> None:
    """Equal up to a share of the largest entry of each tensor."""
    assert list(found) == list(expected)
    for name, x in expected.items():
        limit = tolerance * float(x.abs().max())
        assert_close(found[name], x, rtol=0, atol=limit, msg=lambda text, n=name: f"{n}: {text}")


@pytest.mark.parametrize("kind", ["one block", "blocks", "a task twice", "mixed"])
@pytest.mark.parametrize("heads", [(0, 0), (1, 2), (2, 1)])
def test_gradients_are_those_of_the_losses(heads: tuple[int, int], kind: str) -> None:
    arguments = example(*heads, kind)
    with torch.no_grad():
        made, found = sac.gradients(*arguments)
    expected = plain_losses(*arguments)
    for mine, plain in zip(made, expected, strict=True):
        assert_close(mine, plain.detach(), rtol=1e-10, atol=1e-10)
    # Autograd's way through (u - mean) / std subtracts large numbers where std is small.
    assert_same(found, differentiate(expected, 0.0, arguments[2]), 1e-7)


def test_clamped_log_stds_get_no_gradient() -> None:
    arguments = example(0, 0, "blocks")
    params, name = arguments[2], "actor.2.bias"
    with torch.no_grad():
        params[name][..., ACT:] += torch.tensor([30.0, -60.0, 0.0])  # the limits are 2 and -20
        _, found = sac.gradients(*arguments)
    expected = differentiate(plain_losses(*arguments), 0.0, params)
    assert found[name][..., ACT : ACT + 2].eq(0).all() and found[name][..., -1].ne(0).all()
    assert_close(found[name], expected[name], rtol=1e-5, atol=1e-5)


def test_equal_twins_share_the_actors_gradient() -> None:
    arguments = example(0, 0, "one block")
    params = arguments[2]
    for name, x in params.items():
        if name.startswith("critic."):
            params[name] = x.detach()[:, :1].repeat(1, 2, *(1 for _ in x.shape[2:]))
            params[name].requires_grad_()
    with torch.no_grad():
        _, found = sac.gradients(*arguments)
    assert_same(found, differentiate(plain_losses(*arguments), 0.0, params), 1e-7)


SHORT = ScheduleConfig(
    steps_per_task=30,
    eval_every=30,
    eval_episodes=1,
    start_steps=5,
    update_after=10,
    update_every=10,
)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gets_the_gradients_of_its_losses(
    name: str, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each update of three tasks, penalties included, of two runs together."""
    fast: Callable[..., dict[str, Tensor]] = Trainer.gradients
    positions: set[int] = set()

    def checked(self: Trainer, batch: Batch, targets: Tensor) -> dict[str, Tensor]:
        noise = self.noise("now", batch)
        tables = (self.params, self.value)
        made = plain_losses(
            self.policy, self.critic, *tables, batch, targets, noise, self.target_entropy
        )
        penalty = self.method.actor_penalty(batch) + self.method.critic_penalty(batch)
        expected = differentiate(made, penalty, self.params)
        found = fast(self, batch, targets)
        assert_same(found, expected, 2e-5)
        positions.add(self.position)
        return found

    monkeypatch.setattr(Trainer, "gradients", checked)
    _, plan, outcome = toy_run(tmp_path, name, seeds=(0, 1), schedule=SHORT)
    assert not outcome.failed and outcome.trained == len(plan.segments)
    assert positions == ({2} if METHODS[name].method.joint else {0, 1, 2})


def test_without_a_compiler_updates_are_plain_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import cpp_builder, exc

    def missing() -> str:
        raise exc.InvalidCxxCompiler()

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    for known in (compiling._compiled, compiling._has_compiler):
        known.cache_clear()
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler") as said:
        for function in (sac.targets, sac.gradients):
            assert compiling.compiled(function, "cpu") is function
    assert len(said) == 1
    for known in (compiling._compiled, compiling._has_compiler):
        known.cache_clear()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
@pytest.mark.parametrize("kind", ["blocks", "mixed"])
def test_compiled_equals_plain(kind: str) -> None:
    arguments = example(0, 1, kind)
    policy, critic, params, value, batch, _, noise, _ = arguments
    bootstrap = (policy, critic, params, params, value, batch, noise, 0.9)
    made = []
    with torch.no_grad():
        for fast in (lambda f: f, partial(compiling.compiled, device="cpu")):
            made.append((fast(sac.targets)(*bootstrap), *fast(sac.gradients)(*arguments)))
    (plain, losses, grads), (fused, fused_losses, fused_grads) = made
    assert_close(fused, plain, rtol=1e-9, atol=1e-9)
    for mine, other in zip(fused_losses, losses, strict=True):
        assert_close(mine, other, rtol=1e-9, atol=1e-9)
    assert_same(fused_grads, grads, 1e-9)

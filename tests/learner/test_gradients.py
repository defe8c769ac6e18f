"""The manual gradients against those that autograd takes of `sac_losses`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.experiment.build import make_setup
from cwbench.experiment.conformance import OPTIONS
from cwbench.learner import compiler
from cwbench.learner.gradients import sac_gradients
from cwbench.learner.heads import TaskIndex
from cwbench.learner.losses import SACGradients, autograd_gradients, sac_losses
from cwbench.learner.networks import make_critic
from cwbench.learner.policy import make_policy
from cwbench.learner.replay import Batch
from cwbench.learner.trainer import Trainer
from cwbench.methods import METHODS
from cwbench.planning.rehearsal import Rehearsal
from cwbench.spec.config import Gradients, NetworkConfig, ScheduleConfig
from cwbench.spec.tasks import CW_TASKS
from cwbench.spec.transition import Dims

Params = Mapping[str, Tensor]
RUNS, ROWS, TASKS, OBS, ACT = 2, 12, 3, 5, 3


def tasks_of(kind: str) -> TaskIndex:
    index = torch.randint(TASKS, (RUNS, ROWS), generator=torch.Generator().manual_seed(3))
    blocks: dict[str, tuple[tuple[int, int], ...]] = {
        "one block": ((1, ROWS),),
        "blocks": ((2, 6), (0, 4), (1, 2)),
        "even blocks": ((0, 4), (1, 4), (2, 4)),
        "even, out of order": ((2, 4), (0, 4), (1, 4)),
        "more of the last": ((0, 3), (1, 3), (2, 6)),
        "less of the last": ((0, 5), (1, 5), (2, 2)),
        "a task twice": ((1, 5), (0, 3), (1, 4)),
        "mixed": (),
    }
    if blocks[kind]:
        index = torch.tensor([task for task, rows in blocks[kind] for _ in range(rows)])
        index = index.expand(RUNS, ROWS)
    return TaskIndex(index, blocks[kind])


def example(actor_heads: int, critic_heads: int, kind: str, **options: Any) -> tuple[Any, ...]:
    """Arguments of `sac_gradients` with random numbers of double precision everywhere."""
    heads = {"actor_head_layers": actor_heads, "critic_head_layers": critic_heads}
    network = NetworkConfig(**{"width": 8, "layers": 2, **heads, **options})
    policy, critic = make_policy(OBS, ACT, network), make_critic(OBS, ACT, network)
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
    target = {name: 0.5 * normal(RUNS, *s) for name, s in critic.shapes(TASKS).items()}
    noises = (normal(RUNS, ROWS, ACT), normal(RUNS, ROWS, ACT))
    return policy, critic, params, target, value, batch, *noises, 0.9, -1.5


def assert_same(found: Params, expected: Params, tolerance: float, floor: float = 0) -> None:
    """Equal up to a share of the largest entry of each tensor, or up to `floor`."""
    assert list(found) == list(expected)
    for name, x in expected.items():
        limit = max(floor, tolerance * float(x.abs().max()))
        assert_close(found[name], x, rtol=0, atol=limit, msg=partial("{}: {}".format, name))


@pytest.mark.parametrize(
    "kind",
    [
        *("one block", "blocks", "even blocks", "even, out of order"),
        *("more of the last", "less of the last", "a task twice", "mixed"),
    ],
)
@pytest.mark.parametrize("heads", [(0, 0), (1, 2), (2, 1)])
def test_gradients_are_those_of_the_losses(heads: tuple[int, int], kind: str) -> None:
    assert_gradients_are_those_of_the_losses(example(*heads, kind))


@pytest.mark.parametrize("heads", [(0, 0), (1, 2), (3, 3)])
@pytest.mark.parametrize(
    "options",
    [
        {"hidden": "8,6,4"},
        {"hidden": "8,6,4", "layer_norm": "off", "activation": "relu"},
        {"layers": 3, "layer_norm": "off"},
        {"layers": 3, "activation": "tanh"},
        {"layers": 3, "log_std": "tanh", "log_std_range": "-5,1"},
        {"layers": 3, "log_std_range": "-0.3,0.4"},
    ],
    ids=str,
)
def test_gradients_follow_the_network_options(
    options: dict[str, Any], heads: tuple[int, int]
) -> None:
    assert_gradients_are_those_of_the_losses(example(*heads, "blocks", **options))


def assert_gradients_are_those_of_the_losses(arguments: tuple[Any, ...]) -> None:
    with torch.no_grad():
        manual = sac_gradients(*arguments)
    expected = autograd_gradients(*arguments)
    assert_close(manual.targets, expected.targets, rtol=1e-10, atol=1e-10)
    for one, other in zip(manual.losses, expected.losses, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)
    # Autograd's way through (u - mean) / std subtracts large numbers where std is small.
    assert_same(manual.grads, expected.grads, 1e-7)


def test_terminal_states_count_for_their_reward_alone() -> None:
    arguments = list(example(0, 1, "blocks"))
    terminated = torch.arange(ROWS).remainder(2).double().expand(RUNS, ROWS)
    arguments[5] = batch = replace(arguments[5], terminated=terminated)
    with torch.no_grad():
        manual = sac_gradients(*arguments)
    expected = autograd_gradients(*arguments)
    assert torch.equal(manual.targets[:, 1::2], batch.reward[:, 1::2])
    assert manual.targets[:, ::2].ne(batch.reward[:, ::2]).all()
    assert_close(manual.targets, expected.targets, rtol=1e-10, atol=1e-10)
    assert_same(manual.grads, expected.grads, 1e-7)


def test_clamped_log_stds_get_no_gradient() -> None:
    arguments = example(0, 0, "blocks")
    params, name = arguments[2], "actor.2.bias"
    with torch.no_grad():
        params[name][..., ACT:] += torch.tensor([30.0, -60.0, 0.0])  # the limits are 2 and -20
        found = sac_gradients(*arguments).grads
    expected = autograd_gradients(*arguments).grads
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
        found = sac_gradients(*arguments).grads
    assert_same(found, autograd_gradients(*arguments).grads, 1e-7)


SHORT = ScheduleConfig(
    steps_per_task=20,
    eval_every=20,
    eval_episodes=1,
    start_steps=5,
    update_after=10,
    update_every=5,
)


# A named variant is its method with other options: those are slow.
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if entry.base else [])
    for name, entry in METHODS.items()
]


@pytest.mark.parametrize("name", NAMES)
def test_every_method_gets_the_gradients_of_its_losses(
    name: str, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each update of three tasks, penalties included, of two runs together."""
    compute, adjust = Trainer.sac_gradients, METHODS[name].method.adjust_gradients
    positions: set[int] = set()
    seen: list[tuple[Batch, SACGradients]] = []

    def watched(self: Trainer, batch: Batch, draw: str = "") -> SACGradients:
        computed = compute(self, batch, draw)
        if not draw:
            seen[:] = [(batch, computed)]
        return computed

    def checked(self: Any, grads: dict[str, Tensor]) -> None:
        """Right before the method changes the gradients."""
        trainer, [(batch, computed)] = self.trainer, seen
        losses, y = sac_losses(
            trainer.policy,
            trainer.critic,
            *(trainer.params, trainer.target, trainer.value),
            batch,
            *(trainer.noise("now", batch), trainer.noise("next", batch)),
            trainer.sac.gamma,
            trainer.target_entropy,
        )
        penalty = self.actor_penalty(batch) + self.critic_penalty(batch)
        total = (losses.actor + losses.critic + losses.alpha + penalty).sum()
        trained = trainer.trained
        expected = torch.autograd.grad(total, list(trained.values()))
        # CompoNet's second module attends to equal rows: what is left of its gradient is rounding.
        assert_same(grads, dict(zip(trained, expected, strict=True)), 2e-5, floor=1e-8)
        assert_same({"targets": computed.targets}, {"targets": y}, 2e-5)
        positions.add(trainer.position)
        adjust(self, grads)

    monkeypatch.setattr(Trainer, "sac_gradients", watched)
    monkeypatch.setattr(METHODS[name].method, "adjust_gradients", checked)
    options = OPTIONS.get(name, {})
    _, plan, outcome = toy_run(tmp_path, name, seeds=(0, 1), schedule=SHORT, options=options)
    assert not outcome.failed and outcome.trained == len(plan.segments)
    method = METHODS[name].method
    own_updates = set() if method.experts else {2} if method.trains_jointly else {0, 1, 2}
    assert positions == own_updates


def rehearsal(name: str, tasks: int, device: torch.device, **how: Any) -> Rehearsal:
    """Two runs at the start of their last task, always with the same random transitions."""
    torch.manual_seed(0)
    kind = METHODS[name].method
    small = {"width": 16, "batch_size": 8}
    setup = make_setup(name, METHODS[name], "paper", small)
    fleet = [kind.segments_of_run(setup, seed, CW_TASKS[:tasks])[-1] for seed in (0, 1)]
    return Rehearsal(fleet, kind, Dims(12, 4), device, **how)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_the_same_with_autograd(name: str) -> None:
    """The weights after several updates of the last task.

    In double precision: Adam turns the rounding of a gradient near zero into a step of full size.
    """
    weights = []
    modes: tuple[Gradients, ...] = ("manual", "autograd")
    for mode in modes:
        trainer = rehearsal(name, 2, torch.device("cpu"), gradients=mode)
        trainer.train(5)
        weights.append(trainer.state())
    assert_same(weights[1], weights[0], 1e-6, floor=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
@pytest.mark.parametrize("kind", ["blocks", "even blocks", "more of the last", "mixed"])
def test_compiled_equals_plain(kind: str) -> None:
    arguments = example(0, 1, kind)
    with torch.no_grad():
        plain = sac_gradients(*arguments)
        fused = compiler.compiled(sac_gradients, "cpu")(*arguments)
    assert_close(fused.targets, plain.targets, rtol=1e-9, atol=1e-9)
    for mine, other in zip(fused.losses, plain.losses, strict=True):
        assert_close(mine, other, rtol=1e-9, atol=1e-9)
    assert_same(fused.grads, plain.grads, 1e-9)


ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_CUDA)])
@pytest.mark.parametrize(("name", "count"), [*((name, 2) for name in METHODS), ("recall", 3)])
def test_every_method_learns_the_same_when_compiled(
    name: str,
    count: int,
    device: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """All gradients of an update in the last task, with penalties and what a method changes."""
    tolerance = 1e-4
    if device == "cuda":  # single precision: RECALL's 3e-3 apart, perhaps a unit at its kink
        request.getfixturevalue("double_precision")
        tolerance = 1e-6 if name == "vcl" else 1e-9  # its noise is made in single precision
    made: list[Params] = []
    monkeypatch.setattr(Trainer, "apply", lambda self, grads: made.append(grads))
    for compiled in (False, True):
        trainer = rehearsal(name, count, torch.device(device), compiled=compiled)
        with torch.no_grad():  # away from where the last task ended, so that penalties pull
            for p in trainer.params.values():
                p += 0.05 * torch.randn(p.shape, device=device)
        trainer.update()
    # Attention to a single policy has no gradient: nothing is left of it but rounding.
    assert_same(made[1], made[0], tolerance, floor=1e-3 * tolerance)
    assert any(x.abs().max() > 1e-3 for x in made[0].values())

"""Actors of other architectures: torch against numpy, gradients, what is frozen."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner import Architecture, Method, MethodConfig, Trainer, array_layers
from cwbench.learner.gradients import sac_gradients
from cwbench.learner.heads import TaskIndex
from cwbench.learner.losses import autograd_gradients
from cwbench.learner.networks import make_critic
from cwbench.learner.policy import make_policy, squash
from cwbench.learner.replay import Batch, Replay
from cwbench.methods.componet import Modules
from cwbench.methods.prognet import AdaptorColumns, Columns
from cwbench.rollout.numpy_policy import Actor
from cwbench.spec.config import NetworkConfig, SACConfig, ScheduleConfig
from cwbench.spec.transition import Dims

SEEDS, CPU = [3, 4], torch.device("cpu")


class SharedTrunk(Architecture):
    """As a user might write it: a layer that all tasks share, and an output for each."""

    def shared_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"first.weight": (self.obs_dim, 16), "first.bias": (16,)}

    def module_shapes(self, position: int) -> dict[str, tuple[int, ...]]:
        return {"out.weight": (16, 2 * self.action_dim), "out.bias": (2 * self.action_dim,)}

    @staticmethod
    def compute(xp: Any, config: Any, shared: Any, modules: Any, x: Any) -> Any:
        hidden = array_layers.activate(
            xp, x @ shared["first.weight"] + shared["first.bias"], config.activation
        )
        return hidden @ modules[-1]["out.weight"] + modules[-1]["out.bias"]


ARCHITECTURES = [Columns, AdaptorColumns, Modules, SharedTrunk]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"layer_norm": "off", "activation": "relu", "log_std": "tanh"},
]


def weights(net: Any, tasks: int) -> dict[str, Tensor]:
    """Initial ones, moved away from zero."""
    params = net.init_trunk(SEEDS)
    for position in range(tasks):
        params |= net.init_head(SEEDS, position)
    draw = torch.Generator().manual_seed(1)
    return {name: x + 0.1 * torch.randn(x.shape, generator=draw) for name, x in params.items()}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_numpy_equals_torch(architecture: Any, options: dict[str, Any]) -> None:
    policy = make_policy(12, 4, NetworkConfig(hidden="16,12,8", **options), architecture)
    params = weights(policy.network, 4)
    layout = pickle.loads(pickle.dumps(policy.layout(4)))
    assert b"torch" not in layout.compute  # workers never load it
    flat = torch.cat([params[name].flatten(1) for name in layout.shapes], 1).numpy()
    draw = torch.Generator().manual_seed(2)
    obs, noise = (torch.randn(2, 7, width, generator=draw) for width in (12, 4))
    for position in range(4):
        tasks = TaskIndex.single(position, 2, 7, CPU)
        action, _ = squash(*policy(params, obs, tasks), noise)
        for run in range(2):
            actor = Actor(layout, flat[run])
            batch = actor.act(obs[run].numpy(), position, noise[run].numpy())
            np.testing.assert_allclose(batch, action[run].numpy(), atol=2e-5)
            single = actor.act(obs[run, 0].numpy(), position, noise[run, 0].numpy())
            np.testing.assert_allclose(single, action[run, 0].numpy(), atol=2e-5)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gradients_are_those_of_the_losses(architecture: Any) -> None:
    """Of the trained weights; frozen ones have none."""
    config = NetworkConfig(hidden="8,6,5")
    policy, critic = make_policy(5, 3, config, architecture), make_critic(5, 3, config)
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    net, tasks = policy.network, TaskIndex.single(2, 2, 6, CPU)
    params = {name: x.requires_grad_(net.trains(name, 3)) for name, x in weights(net, 3).items()}
    shapes = critic.shapes(3)
    params |= {name: (normal(2, *s) / 2).requires_grad_() for name, s in shapes.items()}
    params["log_alpha"] = normal(2, 3).requires_grad_()
    target = {name: normal(2, *s) / 2 for name, s in shapes.items()}
    value = {"mean": torch.zeros(2, 3), "std": torch.ones(2, 3)}
    rows = (normal(2, 6, 5), normal(2, 6, 3).tanh(), normal(2, 6), normal(2, 6, 5))
    batch = Batch(*rows, tasks, torch.full((2, 6), 1 / 6), tasks.index)
    noises = (normal(2, 6, 3), normal(2, 6, 3))
    arguments: Any = (policy, critic, params, target, value, batch, *noises, 0.9, -1.5)
    with torch.no_grad():
        manual = sac_gradients(*arguments)
    expected = autograd_gradients(*arguments)
    assert list(manual.grads) == list(expected.grads)
    assert not [name for name in manual.grads if name.startswith(("actor.0", "actor.1"))]
    assert not [name for name in manual.grads if name.endswith(".fixed")]
    for name, grad in expected.grads.items():
        assert_close(manual.grads[name], grad, rtol=1e-6, atol=1e-8)


def trainer_of(
    architecture: Any, seeds: list[int], position: int, inherited: Any = None
) -> Trainer:
    trainer = Trainer(
        seeds,
        position,
        dims=Dims(12, 4),
        sac=SACConfig(batch_size=16),
        network=NetworkConfig(hidden="16,12,8"),
        schedule=ScheduleConfig(),
        device=CPU,
        architecture=architecture,
    )
    replay = Replay(len(seeds), 50, Dims(12, 4), trainer.streams, live=[position])
    data = [torch.randn(50, 29, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    replay.add(position, torch.stack(data))
    trainer.begin(Method(MethodConfig(), trainer), replay, inherited=inherited)
    return trainer


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_old_modules_stay_and_a_run_is_the_same_in_any_fleet(
    architecture: Callable[..., Any],
) -> None:
    first = trainer_of(architecture, [0, 1], 0)
    first.train(3)
    second = trainer_of(architecture, [0, 1], 1, first.state())
    second.train(3)
    for name, x in first.actor_params.items():
        if not name.startswith("actor.shared."):
            assert torch.equal(second.params[name], x), name
    alone = trainer_of(architecture, [1], 1, {k: x[1:] for k, x in first.state().items()})
    alone.train(3)
    for name, x in alone.state().items():
        assert torch.equal(second.state()[name][1:], x), name
    assert any(".1." in name for name in second.optimizer.mean)
    assert not any(name.startswith("actor.0.") for name in second.optimizer.mean)


FAN_IN = {
    Modules: {
        "output.query.weight": 12,
        "output.query.bias": 12,
        "output.key.weight": 4,
        "input.value.weight": 4,
        "input.value.bias": 4,
    },
    Columns: {"lateral.1.weight": 24, "lateral.2.weight": 18},  # of one earlier column
    AdaptorColumns: {"lateral.1.down.weight": 3 * 24, "lateral.1.weight": 24},
    SharedTrunk: {"out.weight": 16, "out.bias": 16},
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_torchs_initial_weights_reach_every_layer(architecture: Any) -> None:
    """Uniform up to 1 / sqrt(fan-in), as `torch.nn.Linear` draws weights and biases."""
    made, glorot = (
        architecture(12, 4, NetworkConfig(hidden="24,18,12", init=init)).init_module(range(100), 3)
        for init in ("torch", "glorot")
    )
    for name, fan_in in FAN_IN[architecture].items():
        largest = float(made[name].abs().max()) * fan_in**0.5
        assert 0.98 < largest < 1.000001, name
    assert not any(x.any() for name, x in glorot.items() if name.endswith(".bias"))

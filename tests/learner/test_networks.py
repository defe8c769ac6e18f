"""Stacked networks against single ones written plainly with torch.nn."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.networks import Network, make_critic
from cwbench.learner.policy import plain_actor
from cwbench.spec.config import NetworkConfig

SEEDS = [3, 4]


def full_params(net: Network, tasks: int) -> dict[str, torch.Tensor]:
    params = net.init_trunk(SEEDS)
    for position in range(tasks):
        for name, head in net.init_head(SEEDS, position).items():
            params[name] = (
                torch.cat([params[name], head], net.task_axis) if name in params else head
            )
    # Away from zero, so that a forgotten bias or scale shows.
    return {
        k: v + 0.1 * torch.randn(v.shape, generator=torch.Generator().manual_seed(1))
        for k, v in params.items()
    }


def plain(
    net: Network, params: dict[str, torch.Tensor], index: tuple[int, ...], task: int
) -> nn.Module:
    """One run's (and twin's) network for one task, from torch's own layers."""

    def pick(name: str) -> torch.Tensor:
        x = params[name][index]
        return x[task] if net.per_task(name) else x

    modules: list[nn.Module] = []
    for layer in range(net.layers + 1):
        weight = pick(f"{net.name}.{layer}.weight")
        linear = nn.Linear(*weight.shape)
        linear.weight.data, linear.bias.data = weight.T.clone(), pick(f"{net.name}.{layer}.bias")
        modules.append(linear)
        if layer == 0 and net.norm:
            norm = nn.LayerNorm(weight.shape[1], eps=1e-3)
            norm.weight.data = pick(f"{net.name}.norm.scale")
            norm.bias.data = pick(f"{net.name}.norm.shift")
            modules += [norm, nn.Tanh()]
        elif layer < net.layers:
            activations = {"leaky-relu": nn.LeakyReLU(0.2), "relu": nn.ReLU(), "tanh": nn.Tanh()}
            modules.append(activations[net.activation])
    return nn.Sequential(*modules)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"hidden": "8,6,7,5", "activation": "relu"},
    {"layer_norm": "off", "activation": "relu"},
    {"layer_norm": "off", "activation": "tanh"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("head_layers", [0, 1, 3, 4])
@pytest.mark.parametrize("kind", ["actor", "critic"])
def test_stacked_equals_single(kind: str, head_layers: int, options: dict[str, Any]) -> None:
    heads = {"actor_head_layers": head_layers, "critic_head_layers": head_layers}
    config = NetworkConfig(**{"width": 8, **heads, **options})
    net = plain_actor(5, 3, config) if kind == "actor" else make_critic(5, 3, config)
    params = full_params(net, tasks=3)
    x = torch.randn(2, 6, net.inputs, generator=torch.Generator().manual_seed(2))
    index = torch.tensor([[0, 0, 2, 2, 2, 1]] * 2)
    by_blocks = net(params, x, TaskIndex(index, ((0, 2), (2, 3), (1, 1))))
    by_index = net(params, x, TaskIndex(index))
    assert_close(by_blocks, by_index)
    for run in range(2):
        for twin in range(2) if net.ensemble else [None]:
            at = (run,) if twin is None else (run, twin)
            for row, task in enumerate(index[run].tolist()):
                expected = plain(net, params, at, task)(x[run, row])
                assert_close(by_blocks[(*at, row)], expected)


def test_initial_weights_are_glorot_and_depend_on_seed_and_position_only() -> None:
    net = plain_actor(12, 4, NetworkConfig())
    trunk, head = net.init_trunk(SEEDS), net.init_head(SEEDS, 5)
    limit = (6 / (256 + 256)) ** 0.5
    weight = trunk["actor.1.weight"]
    assert float(weight.abs().max()) <= limit
    assert_close(weight.var(), torch.tensor(limit**2 / 3), rtol=0.01, atol=0)
    head_limit = (6 / (256 + 4)) ** 0.5  # mean and log-std are layers of four outputs each
    assert 0.99 * head_limit < float(head["actor.4.weight"].abs().max()) <= head_limit
    assert not trunk["actor.1.bias"].any() and trunk["actor.norm.scale"].eq(1).all()
    assert torch.equal(net.init_head([4], 5)["actor.4.weight"], head["actor.4.weight"][1:])
    assert not torch.equal(net.init_head([4], 6)["actor.4.weight"], head["actor.4.weight"][1:])


@pytest.mark.parametrize(
    ("make", "name", "fan_out"), [(plain_actor, "actor", 4), (make_critic, "critic", 1)]
)
def test_output_layers_start_as_layers_of_one_head(make: Any, name: str, fan_out: int) -> None:
    """Glorot's bound from 8 units; the actor's mean and log-std are two layers of four outputs."""
    weight = make(12, 4, NetworkConfig(width=8)).init_head(range(100), 0)[f"{name}.4.weight"]
    limit = (6 / (8 + fan_out)) ** 0.5
    assert 0.99 * limit < float(weight.abs().max()) <= limit


@pytest.mark.parametrize("init", ["glorot", "torch"])
def test_further_units_start_as_the_first_did(init: Any) -> None:
    """Uniform numbers in [0, 1) become weights in a layer's whole range."""
    net = make_critic(12, 4, NetworkConfig(width=8, init=init))
    limit = (6 / (16 + 8)) ** 0.5 if init == "glorot" else 1 / 16**0.5
    assert_close(net.init_units(0, torch.tensor([0.0, 0.5, 1.0])), limit * torch.arange(-1.0, 2))


def test_torchs_initial_weights_have_its_bounds_and_biases() -> None:
    net = plain_actor(12, 4, NetworkConfig(hidden="64,32", init="torch"))
    params = net.init_trunk(SEEDS) | net.init_head(SEEDS, 0)
    for layer, fan_in in enumerate([12, 64, 32]):
        for kind in ("weight", "bias"):
            x = params[f"actor.{layer}.{kind}"]
            assert 0.7 * fan_in**-0.5 < float(x.abs().max()) <= fan_in**-0.5
    assert_close(params["actor.1.weight"].var(), torch.tensor(1 / 64 / 3), rtol=0.1, atol=0)
    assert params["actor.norm.scale"].eq(1).all() and not params["actor.norm.shift"].any()

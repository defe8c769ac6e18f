"""Progressive networks: what columns read, and that one column is the plain actor."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, leaky_relu, relu
from torch.testing import assert_close

import cwbench
from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import make_policy
from cwbench.learner.trainer import Trainer
from cwbench.methods.prognet import AdaptorColumns, Columns, ProgNet, ProgNetConfig
from cwbench.spec.actor_layout import NORM_EPS
from cwbench.spec.config import NetworkConfig

SEEDS, CPU = [3, 4], torch.device("cpu")
CONFIG = NetworkConfig(hidden="16,12,8")
OBS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))


BOTH = pytest.mark.parametrize("kind", [Columns, AdaptorColumns])


def outputs(
    params: dict[str, Tensor], position: int, kind: type[Columns] = Columns, obs: Tensor = OBS
) -> Tensor:
    tasks = TaskIndex.single(position, obs.shape[0], obs.shape[1], CPU)
    return torch.cat(make_policy(12, 4, CONFIG, kind)(params, obs, tasks), -1)


def fresh(positions: int, kind: type[Columns] = Columns) -> dict[str, Tensor]:
    columns = kind(12, 4, CONFIG)
    return {k: x for p in range(positions) for k, x in columns.init_head(SEEDS, p).items()}


def plain_output(position: int) -> Tensor:
    """Of the actor that `independent` starts a position with."""
    policy = make_policy(12, 4, CONFIG)
    params = policy.network.init_trunk(SEEDS, f"@{position}" if position else "")
    params |= policy.network.init_head(SEEDS, position)
    return torch.cat(policy(params, OBS, TaskIndex.single(0, 2, 7, CPU)), -1)


@BOTH
def test_the_first_column_is_the_plain_actor(kind: type[Columns]) -> None:
    assert_close(outputs(fresh(1, kind), 0, kind), plain_output(0))


@BOTH
def test_without_laterals_every_column_is_the_plain_actor(kind: type[Columns]) -> None:
    params = {name: 0 * x if ".lateral." in name else x for name, x in fresh(3, kind).items()}
    for position in range(3):
        assert_close(outputs(params, position, kind), plain_output(position))


@BOTH
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("column", [0, 1])
def test_a_column_reads_all_layers_of_earlier_ones_but_the_last(
    column: int, layer: int, kind: type[Columns]
) -> None:
    """In a published release the first column's features are never read."""
    params = fresh(3, kind)
    before = outputs(params, 2, kind)
    params[f"actor.{column}.actor.{layer}.weight"] *= 1.5
    assert not torch.allclose(outputs(params, 2, kind), before, atol=1e-6)


def test_later_columns_leave_earlier_policies_alone() -> None:
    params = fresh(2)
    before = outputs(params, 1)
    params |= Columns(12, 4, CONFIG).init_head(SEEDS, 2)
    assert torch.equal(outputs(params, 1), before)
    last = fresh(3)["actor.0.actor.2.weight"]  # read by column 0's output alone
    params["actor.0.actor.2.weight"] = 2 * last
    assert torch.equal(outputs(params, 1), before)


def test_adaptors_compute_the_papers_equation() -> None:
    """h_l^2 = f(h_{l-1}^2 W + b + relu([a_0 h_{l-1}^0, a_1 h_{l-1}^1] V) U), column by column."""
    params = {name: x[0, 0].double() for name, x in fresh(3, AdaptorColumns).items()}
    obs = OBS[0].double()

    def linear(column: int, layer: int, x: Tensor) -> Tensor:
        own = f"actor.{column}.actor.{layer}"
        return x @ params[f"{own}.weight"] + params[f"{own}.bias"]

    hidden = [torch.tanh(layer_norm(linear(k, 0, obs), [16], eps=NORM_EPS)) for k in range(3)]
    for layer in (1, 2):
        above = []
        for k in range(3):
            x, own = linear(k, layer, hidden[k]), f"actor.{k}.lateral.{layer}"
            if k:
                read = [params[f"{own}.alpha"][j] * hidden[j] for j in range(k)]
                narrow = relu(torch.cat(read, -1) @ params[f"{own}.down.weight"])
                x = x + narrow @ params[f"{own}.weight"]
            above.append(leaky_relu(x, 0.2))
        hidden = above
    mean, log_std = linear(2, 3, hidden[2]).chunk(2, -1)
    expected = torch.cat([mean, log_std.clamp(-20, 2)], -1)
    found = outputs(
        {name: x[None, None] for name, x in params.items()}, 2, AdaptorColumns, obs[None]
    )
    assert_close(found[0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "init", "name", "limit"),
    [
        (Columns, "glorot", "1.weight", math.sqrt(6 / (2 * 16 + 12))),
        (Columns, "torch", "1.weight", 1 / math.sqrt(16)),  # as one column's own
        (AdaptorColumns, "torch", "1.weight", 1 / math.sqrt(16)),
        (AdaptorColumns, "torch", "1.down.weight", 1 / math.sqrt(2 * 16)),
        (AdaptorColumns, "glorot", "1.alpha", 0.1),
    ],
)
def test_laterals_start_within_their_limits(
    kind: type[Columns], init: Any, name: str, limit: float
) -> None:
    columns = kind(12, 4, replace(CONFIG, init=init))
    largest = columns.init_head(range(40), 2)[f"actor.2.lateral.{name}"].abs().max()
    assert 0.95 * limit < largest <= limit


def test_critics_start_again_in_every_later_task(make_trainer: Callable[..., Trainer]) -> None:
    trainer = make_trainer([0, 1], position=1)
    method = ProgNet(ProgNetConfig(), trainer)
    method.on_task_start(1)
    fresh = trainer.fresh_trunk("critic", "@1")["critic.1.weight"]
    assert torch.equal(trainer.params["critic.1.weight"], fresh)


def test_a_policy_with_adaptors_is_read_back(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path, "prognet", seeds=(3,), options={"laterals": "adaptor"})
    runs = cwbench.load_runs(tmp_path)
    table = runs.evaluations
    [row] = table[(table["step"] == 180) & (table["task"] == "reach-4-1")].to_dict("records")
    policy = cwbench.load_policy(runs[0], "reach-4-1")
    found = cwbench.evaluate(policy, "reach-4-1", episodes=row["episodes"])
    assert found.mean_return == row["mean_return"]
    assert policy.layout.shapes["actor.2.lateral.1.alpha"] == (1, 2)

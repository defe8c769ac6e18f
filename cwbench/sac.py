"""The losses of soft actor-critic as functions of tensors alone, so that they can be compiled.

Every quantity keeps the run axis: losses are [R], batches [R, B, ...].
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cwbench.nets import Network, Policy, Tasks, squash
from cwbench.replay import Batch
from cwbench.runaxis import per_run_sum

Params = Mapping[str, Tensor]


class Losses(NamedTuple):
    actor: Tensor  # [R]
    critic: Tensor  # [R]
    alpha: Tensor  # [R]
    q: Tensor  # [R], mean normalised value of the first critic
    entropy: Tensor  # [R], mean estimate


def act(
    policy: Policy, params: Params, obs: Tensor, tasks: Tasks, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """A fresh action for each row and its log density: [R, B, A], [R, B]."""
    mean, log_std = policy(params, obs, tasks)
    return squash(mean, log_std, noise)


def values(critic: Network, params: Params, obs: Tensor, action: Tensor, tasks: Tasks) -> Tensor:
    """Normalised values of both critics: [R, 2, B]."""
    return critic(params, torch.cat([obs, action], -1), tasks).squeeze(-1)


def targets(
    policy: Policy,
    critic: Network,
    params: Params,
    target: Params,
    value: Params,
    batch: Batch,
    noise: Tensor,
    gamma: float,
) -> Tensor:
    """r + gamma * (min Q' - alpha * log pi), in the unit of rewards: [R, B]."""
    action, log_density = act(policy, params, batch.next_obs, batch.tasks, noise)
    q = values(critic, target, batch.next_obs, action, batch.tasks).amin(1)
    q = q * batch.tasks.of(value["std"]) + batch.tasks.of(value["mean"])
    alpha = batch.tasks.of(params["log_alpha"]).exp()
    return batch.reward + gamma * (q - alpha * log_density)


def losses(
    policy: Policy,
    critic: Network,
    params: Params,
    value: Params,
    batch: Batch,
    wanted: Tensor,
    noise: Tensor,
    target_entropy: float,
) -> Losses:
    """All losses at the same weights. `wanted` are the targets in the unit of rewards: [R, B]."""
    tasks, weight = batch.tasks, batch.weight
    action, log_density = act(policy, params, batch.obs, tasks, noise)
    frozen = {name: p.detach() for name, p in params.items()}
    alpha = tasks.of(frozen["log_alpha"]).exp()
    best = values(critic, frozen, batch.obs, action, tasks).amin(1)
    actor = per_run_sum(weight * (alpha * log_density - best))

    normalised = (wanted - tasks.of(value["mean"])) / tasks.of(value["std"])
    q = values(critic, params, batch.obs, batch.action, tasks)
    error = (q - normalised.unsqueeze(1)) ** 2

    entropy = -log_density.detach()
    # The factor is log alpha, not alpha, as in the reference.
    surplus = tasks.of(params["log_alpha"]) * (entropy - target_entropy)
    return Losses(
        actor,
        0.5 * per_run_sum(weight * error.sum(1)),
        per_run_sum(weight * surplus),
        per_run_sum(weight * q[:, 0].detach()),
        per_run_sum(weight * entropy),
    )


@cache
def functions(compiled: bool) -> tuple[Callable[..., Tensor], Callable[..., Losses]]:
    """`targets` and `losses`, as they are or with their elementwise parts fused by the compiler."""
    if not compiled:
        return targets, losses
    import torch._dynamo

    # One version per shape of fleet and number of tasks; the default of 8 would be too few.
    torch._dynamo.config.cache_size_limit = 256
    settings: dict[str, Any] = {"dynamic": False, "fullgraph": True}
    return torch.compile(targets, **settings), torch.compile(losses, **settings)

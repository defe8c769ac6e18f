"""Keeping old behaviour: divergence of Gaussian policies, and policies recorded at a task's end."""

from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import (
    Policy,
    TaskIndex,
    Trainer,
    draw_equally,
    gaussian_kl,
    per_run_sum,
    take_rows,
)

Direction = Literal["old_new", "new_old"]
Reduce = Literal["sum", "mean"]
States = Mapping[str, Tensor]  # obs, action, policy, q of recorded states: [R, tasks * n, width]

DRAW = 100  # states drawn at once when recording
FORWARD = 256  # rows of a run per forward pass when a whole memory is recorded


def policy_kl(new: Tensor, old: Tensor, *, direction: Direction, reduce: Reduce) -> Tensor:
    """Divergence of policies given as (mean, log-std): [R, B, 2A] twice -> [R, B]."""
    first, second = (old, new) if direction == "old_new" else (new, old)
    kl = gaussian_kl(*first.chunk(2, -1), *second.chunk(2, -1))
    return kl.sum(-1) if reduce == "sum" else kl.mean(-1)


def mean_kl(
    policy: Policy,
    params: Mapping[str, Tensor],
    obs: Tensor,
    tasks: TaskIndex,
    old: Tensor,
    *,
    direction: Direction,
    reduce: Reduce,
) -> Tensor:
    """Divergence between recorded policies and that of these weights, a mean over states: [R]."""
    now = torch.cat(policy(params, obs, tasks), -1)
    kl = policy_kl(now, old, direction=direction, reduce=reduce)
    return per_run_sum(kl / kl.shape[1])


def policy_of(trainer: Trainer, obs: Tensor, tasks: TaskIndex) -> Tensor:
    """Mean and log-std of the policy as it is now, with gradients: [R, B, 2A]."""
    return torch.cat(trainer.policy(trainer.params, obs, tasks), -1)


@torch.no_grad()
def record_memory(trainer: Trainer) -> Tensor:
    """The policy on every stored transition of the current task, on the CPU: [R, n, 2A]."""
    obs = trainer.dims.unpack(trainer.replay.stored(trainer.position))["obs"]
    recorded = torch.empty(*obs.shape[:2], 2 * trainer.dims.action)
    for start in range(0, obs.shape[1], FORWARD):
        part = obs[:, start : start + FORWARD]
        tasks = TaskIndex.single(trainer.position, trainer.runs, part.shape[1], trainer.device)
        recorded[:, start : start + FORWARD] = policy_of(trainer, part, tasks)
    return recorded


@torch.no_grad()
def record_states(trainer: Trainer, count: int) -> dict[str, Tensor]:
    """Sampled transitions of the current task, with policy and values: [R, count, ...]."""
    parts = list(_recordings(trainer, count))
    return {name: torch.cat([part[name] for part in parts], 1) for name in parts[0]}


def _recordings(trainer: Trainer, count: int) -> Iterator[dict[str, Tensor]]:
    for number, start in enumerate(range(0, count, DRAW)):
        trainer.streams.seek(trainer.updates + number)
        batch = trainer.replay.sample(DRAW, "record")
        part = {
            "obs": batch.obs,
            "action": batch.action,
            "policy": policy_of(trainer, batch.obs, batch.tasks),
            "q": trainer.q(trainer.params, batch.obs, batch.action, batch.tasks).movedim(1, -1),
        }
        yield {name: x[:, : count - start] for name, x in part.items()}


def extended(states: States, new: States) -> dict[str, Tensor]:
    """The states recorded so far, and those of one more task."""
    return {name: torch.cat([states[name], x], 1) if states else x for name, x in new.items()}


def first_of_each(states: States, *, tasks: int, count: int) -> dict[str, Tensor]:
    """At most `count` recorded states of each task; they were drawn at random."""
    split = {name: x.view(len(x), tasks, -1, x.shape[-1]) for name, x in states.items()}
    return {name: x[:, :, :count].flatten(1, 2) for name, x in split.items()}


def sample_states(
    trainer: Trainer, states: States, size: int
) -> tuple[dict[str, Tensor], TaskIndex]:
    """Recorded states, equally many of each old task, with replacement: at least `size`.

    Two hooks that ask in one update get the same states.
    """
    old = trainer.position
    kept = states["obs"].shape[1] // old
    rows = draw_equally(trainer.streams, "recorded", size, tasks=old, kept=kept)
    tasks = TaskIndex.equal_blocks(range(old), trainer.runs, rows.shape[1] // old, trainer.device)
    return {name: take_rows(x, rows) for name, x in states.items()}, tasks

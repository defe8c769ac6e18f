"""Measures of plasticity and forgetting. They are taken between updates and change nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import gaussian_kl
from cwbench.learner.runaxis import global_norm, per_run_sum, sum_over
from cwbench.learner.trainer import Trainer

ROWS = 256  # transitions that everything is measured on
DORMANT = 0.1  # units at most this active, relative to their layer (Sokar et al. 2023)

Params = Mapping[str, Tensor]
Values = dict[tuple[str, str], Tensor]  # (quantity, part) -> [R]


@dataclass(frozen=True)
class Probe:
    """What a policy answered at its task's end."""

    obs: Tensor  # [R, N, O]
    mean: Tensor  # [R, N, A]
    log_std: Tensor


@torch.no_grad()
def measure(trainer: Trainer, draw: str) -> Values:
    """Of the current task; `draw` names the transitions."""
    batch = trainer.replay.sample_once(ROWS, f"diagnose-{draw}")
    grads = trainer.sac_gradients_once(batch, f"diagnose-{draw}").grads
    values: Values = {}
    for name in trainer.networks:
        for layer, hidden in enumerate(trainer.hidden(name, batch)):
            values["dormant", f"{name}.{layer}"] = dormant_share(hidden)
            values["effective_rank", f"{name}.{layer}"] = effective_rank(hidden)
        trunk = trainer.trunk_names(name)
        if trunk:
            values["weight_norm", name] = global_norm(trainer.params[key] for key in trunk)
        values["gradient_norm", name] = global_norm(
            grads[key] for key in trainer.group(name) if key in grads
        )
    return values | _cosines(trainer, grads, draw)


def _cosines(trainer: Trainer, grads: Params, draw: str) -> Values:
    """Between gradients of old tasks and of the current one, in shared weights, if both are had."""
    if len(trainer.replay.positions) == 1 or len(trainer.replay.live) > 1:
        return {}
    name = f"diagnose-{draw}-old"
    old = trainer.sac_gradients_once(trainer.replay.sample_old_once(ROWS, name), name).grads
    return {
        ("gradient_cosine", name): cosine([old[k] for k in trunk], [grads[k] for k in trunk])
        for name in trainer.networks
        if (trunk := trainer.trunk_names(name))
    }


def dormant_share(hidden: Tensor) -> Tensor:
    """Share of units that are silent compared with their layer: [R, (2,) B, D] -> [R]."""
    return (dormancy(activity(hidden)) <= DORMANT).float().flatten(1).mean(1)


def activity(hidden: Tensor) -> Tensor:
    """Mean size of each unit's output over a batch: [R, (2,) B, D] -> [R, (2,) D]."""
    return hidden.abs().mean(-2)


def dormancy(active: Tensor) -> Tensor:
    """Activity relative to the layer's mean, which is 1 (Sokar et al. 2023, eq. 1): [R, (2,) D]."""
    return active / (active.mean(-1, keepdim=True) + 1e-9)


def effective_rank(hidden: Tensor) -> Tensor:
    """(sum of eigenvalues)^2 / sum of their squares, of H^T H: [R, (2,) B, D] -> [R].

    This participation ratio is n for n orthogonal directions of equal size, and needs no
    decomposition, which would be slow on a GPU.
    """
    gram = hidden.mT @ hidden
    trace = gram.diagonal(dim1=-2, dim2=-1).sum(-1)
    ratio = trace**2 / (gram**2).sum((-2, -1)).clamp(min=1e-30)
    return ratio.view(len(hidden), -1).mean(1)


def cosine(some: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor:
    """Of all entries of a run together: [R]."""
    product = sum_over(per_run_sum(x * y) for x, y in zip(some, others, strict=True))
    return product / (global_norm(some) * global_norm(others)).clamp(min=1e-30)


@torch.no_grad()
def probe(trainer: Trainer, weights: Params) -> Probe:
    """The current task's policy on some of its observations, to compare later ones with."""
    batch = trainer.replay.sample_once(ROWS, "probe")
    mean, log_std = trainer.policy(weights, batch.obs, batch.tasks)
    return Probe(batch.obs, mean, log_std)


@torch.no_grad()
def divergence(trainer: Trainer, weights: Params, position: int, then: Probe) -> Tensor:
    """KL from a task's policy at its end to the one that acts for it now: [R]."""
    runs, rows = then.obs.shape[:2]
    tasks = TaskIndex.single(position, runs, rows, trainer.device)
    mean, log_std = trainer.policy(weights, then.obs, tasks)
    return gaussian_kl(then.mean, then.log_std, mean, log_std).sum(-1).mean(-1)

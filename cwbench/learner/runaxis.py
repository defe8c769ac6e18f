"""Reductions that keep runs apart. Axis 0 of every tensor is the run."""

from collections.abc import Iterable, Sequence
from functools import reduce

import torch
from torch import Tensor

BLOCK = 4096  # entries that one part of a GPU sums


def per_run_sum(x: Tensor) -> Tensor:
    """Sum over everything but the run: [R, ...] -> [R].

    The last axis goes first: torch splits one long sum over threads, and then the result of a run
    would depend on how many threads and runs there are.
    """
    return x.sum(-1).flatten(1).sum(1) if x.dim() > 2 else x.sum(1)


def like(value: Tensor, x: Tensor) -> Tensor:
    """One number per run, shaped to broadcast against x: [R] -> [R, 1, ...]."""
    return value.view(-1, *(1 for _ in x.shape[1:]))


def sum_over(parts: Iterable[Tensor]) -> Tensor:
    """One after another: a stacked sum takes another order for one run than for several."""
    return reduce(torch.add, parts)


def global_norm(tensors: Iterable[Tensor]) -> Tensor:
    """Euclidean norm of all entries of a run together: [R]."""
    return sum_over(per_run_sum(_blocks(x * x)) for x in tensors).sqrt()


def _blocks(x: Tensor) -> Tensor:
    """As [R, n, BLOCK] where possible: on a GPU, sums over a weight's short rows are slow."""
    if x.is_cuda and x[0].numel() % BLOCK == 0:
        return x.reshape(len(x), -1, BLOCK)
    return x


def clip_scale(tensors: Iterable[Tensor], limit: float) -> Tensor:
    """The factor for each run's tensors with which their norm is at most `limit`: [R]."""
    return limit / global_norm(tensors).clamp(min=limit)


def clip_global_norm(tensors: Sequence[Tensor], limit: float) -> None:
    """Scale each run's tensors together, in place, so that their norm is at most `limit`."""
    scale = clip_scale(tensors, limit)
    for x in tensors:
        x.mul_(like(scale, x))

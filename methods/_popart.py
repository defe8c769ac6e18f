"""PopArt: normalise each head's targets by running statistics, and keep what the head predicts.

van Hasselt et al. 2016; per task as in Hessel et al. 2019.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import TaskIndex, Trainer

Stats = Literal["raw", "normalized"]

VARIANCE_MIN, VARIANCE_MAX = 1e-8, 1e12


@torch.no_grad()
def update_popart(
    trainer: Trainer, tasks: TaskIndex, targets: Tensor, *, beta: Tensor, stats: Stats
) -> None:
    """Move the statistics of the heads in the batch and rescale those heads.

    Targets are [R, B], beta is [R].
    """
    last = f"critic.{trainer.critic.layers}"
    outputs = [
        (table[f"{last}.weight"].detach(), table[f"{last}.bias"].detach())
        for table in (trainer.params, trainer.target)
    ]
    trainer.fast(_move)(trainer.value, tasks, targets, beta.unsqueeze(1), outputs, stats)


def _move(
    value: Mapping[str, Tensor],
    tasks: TaskIndex,
    targets: Tensor,
    beta: Tensor,
    outputs: Sequence[tuple[Tensor, Tensor]],
    stats: Stats,
) -> None:
    mean, std = value["mean"], value["std"]
    if stats == "normalized":  # quirk: the release feeds its statistics with their own output
        targets = (targets - tasks.of(mean)) / tasks.of(std)
    new_mean, new_std = moved_statistics(mean, std, tasks, targets, beta)
    # Exactly 1 and 0 where nothing moved.
    rescale(outputs, std / new_std, (mean - new_mean) / new_std)
    mean.copy_(new_mean)
    std.copy_(new_std)


def moved_statistics(
    mean: Tensor, std: Tensor, tasks: TaskIndex, targets: Tensor, beta: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Mean and std [R, T] after a batch of targets; heads absent from it keep theirs.

    The running second moment nu' = nu + beta (mean(y^2) - nu) is not kept: with nu = std^2 + mean^2
    the variance nu' - mean'^2 is the sum below, which does not subtract two large numbers.
    """
    heads = torch.arange(mean.shape[1], device=mean.device)
    member = (tasks.index.unsqueeze(-1) == heads).to(targets.dtype)  # [R, B, T]
    count = member.sum(1)  # [R, T]
    batch_mean = (member * targets.unsqueeze(-1)).sum(1) / count.clamp(min=1)
    offset = member * (targets - tasks.of(batch_mean)).unsqueeze(-1)
    batch_variance = (offset**2).sum(1) / count.clamp(min=1)
    gap = batch_mean - mean
    variance = (1 - beta) * std**2 + beta * batch_variance + beta * (1 - beta) * gap**2
    new_std = variance.clamp(VARIANCE_MIN, VARIANCE_MAX).sqrt()
    present = count > 0
    return torch.where(present, mean + beta * gap, mean), torch.where(present, new_std, std)


def rescale(outputs: Sequence[tuple[Tensor, Tensor]], ratio: Tensor, shift: Tensor) -> None:
    """Change last layers so that new statistics leave every prediction as it was.

    w' = (sigma / sigma') w and b' = (sigma b + mu - mu') / sigma', for both critics and both
    targets: they share the statistics. quirk: the release rescales the first critic only, so the
    other three networks' predictions jump at every update; not offered.
    """
    for weight, bias in outputs:  # [R, 2, T, D, 1], [R, 2, T, 1]; the factors are [R, T]
        weight.mul_(ratio[:, None, :, None, None])
        bias.mul_(ratio[:, None, :, None]).add_(shift[:, None, :, None])

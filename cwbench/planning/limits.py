"""Runs that are too large for the memory that is free."""

from collections.abc import Sequence

import torch

from cwbench import envs
from cwbench.planning.estimate import Memory, free_bytes
from cwbench.planning.machine import size
from cwbench.planning.sizes import parameter_counts
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment


def check_processes(memory: Memory) -> None:
    """UserError if this process and its workers leave no memory for tensors."""
    host = free_bytes(torch.device("cpu"), memory.processes)
    if host <= 0:
        raise UserError(
            f"the workers need {size(memory.processes)} of memory and "
            f"{size(host + memory.processes)} are free",
            "try fewer --workers or --eval-episodes",
        )
    if memory.free <= 0:
        raise UserError("no memory is free on the device", "choose another --device")


def check_weights(segments: Sequence[Segment], free: int) -> None:
    """UserError if weights alone are larger than memory: the rehearsals would try to hold them."""
    for segment in {segment.setup: segment for segment in segments}.values():
        setup = segment.setup
        actor, critic = parameter_counts(segment, envs.dims(setup.env))
        # Weights, gradients and Adam's two moments; for the critics a target. Then activations.
        numbers = 4 * actor + 5 * critic
        numbers += 3 * setup.sac.batch_size * sum(setup.network.units)
        if 4 * numbers > free:
            raise UserError(
                f"one run of {setup.method} needs at least {size(4 * numbers)} of memory and "
                f"{size(free)} are free",
                "try a smaller --width, --layers or --batch-size",
            )


def does_not_fit(segment: Segment, memory: Memory) -> UserError:
    """The error for a segment of which not even one run fits."""
    needed, free = memory.needed([segment]), memory.free
    mostly_replay = 2 * memory.costs.replay_bytes([segment]) > needed
    return UserError(
        f"{segment.folder}: one run needs {size(needed)} of memory and {size(free)} are free",
        f"try a smaller {'--buffer-size' if mostly_replay else '--batch-size or --width'}",
    )

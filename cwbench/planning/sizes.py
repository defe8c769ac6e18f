"""Sizes of what a fleet keeps in memory and on disk, counted without allocating any of it."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from cwbench.learner.method import Method, ask
from cwbench.learner.networks import make_critic
from cwbench.learner.policy import make_policy
from cwbench.learner.trainer import Trainer
from cwbench.spec.schedule import longest_share
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims


def parameter_counts(segment: Segment, dims: Dims) -> tuple[int, int]:
    """Parameters of the actor and of both critics, all heads included."""
    network, tasks = segment.setup.network, len(segment.tasks)
    actor, critic = make_policy(*dims[:2], network).network, make_critic(*dims[:2], network)
    return count_parameters(actor, critic, tasks)


def count_parameters(actor: Any, critic: Any, tasks: int) -> tuple[int, int]:
    counts = [sum(prod(s) for s in net.shapes(tasks).values()) for net in (actor, critic)]
    return counts[0], counts[1]


def row_bytes(dims: Dims) -> int:
    return 4 * dims.width


class ReplayShape(NamedTuple):
    """What the replay of a group holds of each run."""

    capacity: int  # transitions of each live position, at most
    live: list[int]  # positions whose environments are stepped
    old: list[int]  # positions whose transitions were kept


def replay_shape(method: Method[Any], segment: Segment) -> ReplayShape:
    lanes = ask(method, "lanes", segment.position)
    horizon, steps = segment.setup.env.horizon, method.expert_steps or segment.steps
    share = max(longest_share(steps, len(lane), horizon) for lane in lanes)
    live = sorted({position for lane in lanes for position in lane})
    old = [p for p in range(segment.position) if method.keeps_replay and p not in live]
    return ReplayShape(min(segment.setup.sac.buffer_size, share), live, old)


def replay_bytes(segments: Sequence[Segment], method: Method[Any], dims: Dims) -> int:
    """Transitions in memory for a group: each run's own, and each distinct ancestor's once."""
    first = segments[0]
    shape = replay_shape(method, first)
    own = len(segments) * len(shape.live) * shape.capacity * row_bytes(dims)
    ancestors = set()
    if shape.old:
        for segment in segments:
            parent = segment.parent
            while parent is not None:
                if parent.position in shape.old:
                    ancestors.add(parent.id)
                parent = parent.parent
    return own + len(ancestors) * kept_bytes(first, method, dims, first.position)


def kept_bytes(segment: Segment, method: Method[Any], dims: Dims, tasks: int) -> int:
    """What is kept of each finished task when there are `tasks` of them."""
    rows = min(segment.setup.sac.buffer_size, segment.steps)
    limit = method.rows_per_task(tasks)
    rows = rows if limit is None else min(rows, limit)
    return rows * (row_bytes(dims) + 4 * method.annotation_width)


def bare_method(segment: Segment, method_class: type[Method[Any]], dims: Dims) -> Method[Any]:
    """A segment's method and trainer before they start: for what their classes decide."""
    options = segment.setup.options
    trainer = Trainer.of_segments(
        [segment],
        dims=dims,
        device=torch.device("cpu"),
        architecture=method_class.architecture_of(options),
    )
    return method_class(options, trainer)

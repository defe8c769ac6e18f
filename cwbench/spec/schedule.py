"""When a segment collects, updates and evaluates, and how it explores."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby

from cwbench.spec.config import ScheduleConfig


@dataclass(frozen=True)
class Milestone:
    """A step at which collection pauses."""

    step: int  # steps done
    updates: int  # to make now
    evaluate: bool


def milestones(
    schedule: ScheduleConfig, steps: int, expert_steps: int | None = None
) -> Iterator[Milestone]:
    """All milestones of a segment, in order; the last one is its end and always evaluates.

    Where an expert has learned the task before, it acts for the last `expert_steps` steps, and
    nothing is learned meanwhile.

    The reference updates after its 0-based step t when t >= update_after and t % update_every == 0,
    i.e. when t + 1 steps are done: 999,000 updates in a million steps.
    """
    every, evals = schedule.update_every, schedule.eval_every
    if expert_steps is not None:
        for step in range(steps - expert_steps + every, steps, every):
            yield Milestone(step, 0, False)
        yield Milestone(steps, 0, True)
        return
    points = merge(range(1, steps + 1, every), range(evals, steps + 1, evals), [steps])
    for step, _ in groupby(points):
        last = step - 1
        due = last % every == 0 and last >= schedule.update_after
        yield Milestone(step, every if due else 0, step % evals == 0 or step == steps)


def longest_chunk(schedule: ScheduleConfig, steps: int) -> int:
    return min(schedule.update_every, steps)


def count_updates(schedule: ScheduleConfig, steps: int, expert_steps: int | None = None) -> int:
    """Of all milestones up to `steps`."""
    every = schedule.update_every
    first, last = -(-schedule.update_after // every), (steps - 1) // every  # in units of `every`
    return 0 if expert_steps is not None else every * max(0, last - first + 1)


def count_evaluations(schedule: ScheduleConfig, steps: int, expert_steps: int | None = None) -> int:
    """Of all milestones of a segment of `steps` steps."""
    return 1 if expert_steps is not None else -(-steps // schedule.eval_every)


def longest_share(steps: int, tasks: int, horizon: int) -> int:
    """The most steps any of several tasks gets when they alternate, episode by episode."""
    if tasks == 1:
        return steps
    return min(steps, -(-steps // (tasks * horizon)) * horizon)


@dataclass(frozen=True)
class Exploration:
    """How a task begins, as plain data, because actions are chosen in worker processes.

    For `steps` steps act uniformly; or, if heads are named, let each act for one episode and then
    the one with the best mean return so far. Afterwards the task's own policy acts.
    """

    steps: int
    heads: tuple[int, ...] = ()

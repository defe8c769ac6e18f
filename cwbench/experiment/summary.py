"""A plan in a few lines before training, and how it ended after it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cwbench.spec.failure import brief
from cwbench.spec.text import counted, duration

if TYPE_CHECKING:
    from cwbench.experiment.listener import Listener
    from cwbench.fleet.claiming import Outcome
    from cwbench.planning.estimate import Estimate
    from cwbench.planning.plan import Plan
    from cwbench.store.results import Store


def describe(
    plan: Plan, needs: Estimate, resumed: Mapping[str, int], device: str, workers: str
) -> list[str]:
    """A plan in a few lines: runs, steps, memory, time. `resumed`: id -> steps left."""
    from cwbench.planning.machine import size

    total, missing = len(plan.segments), plan.missing
    lines = [
        f"{counted(len(plan.runs), 'run')} = {counted(total, 'segment')}, "
        f"{total - missing:,} done, {missing:,} to train in "
        f"{counted(len(plan.fleets), 'fleet')} on {device}, {workers}"
    ]
    if missing:
        lines += [*_odd_schedules(plan), *_resumed(plan, resumed)]
        on_device = f", device {size(needs.device_bytes)}" if needs.device_bytes else ""
        lines += [
            f"steps: {needs.steps:,} training + {needs.eval_steps:,} evaluation; "
            f"updates: {needs.updates:,}",
            f"memory: host {size(needs.host_bytes)}{on_device}; disk {size(needs.disk_bytes)}",
        ]
        if needs.seconds is not None:
            lines.append(
                f"about {duration(needs.seconds)} from a short measurement on this machine"
            )
    return lines


def disk_shortage(results: Path, needed: int) -> list[str]:
    """A line that says so, if the disk of a results folder has less space than is needed."""
    from cwbench.planning.machine import size

    folder = next(p for p in [results, *results.resolve().parents] if p.exists())
    free = shutil.disk_usage(folder).free
    return [f"not enough disk space: {size(free)} free for {results}"] if free < needed else []


def _odd_schedules(plan: Plan) -> list[str]:
    """Where tasks are shorter than episodes, which are then not counted, or than exploration."""
    setups = [segment.setup for fleet in plan.fleets for segment in fleet]
    endless = {(setup.env.horizon, setup.schedule.steps_per_task) for setup in setups}
    random = {(setup.schedule.start_steps, setup.schedule.steps_per_task) for setup in setups}
    return [
        f"no episode of {horizon:,} steps ends in a task of {steps:,}: give more --steps-per-task"
        for horizon, steps in sorted(endless)
        if horizon > steps
    ] + [
        f"tasks of {steps:,} steps are explored at random to their end: give fewer --start-steps "
        f"than {start:,}"
        for start, steps in sorted(random)
        if start >= steps
    ]


def _resumed(plan: Plan, left: Mapping[str, int]) -> list[str]:
    """At which steps interrupted segments continue."""
    counts = Counter(
        (segment.steps - left[segment.id], segment.steps)
        for fleet in plan.fleets
        for segment in fleet
        if segment.id in left
    )
    return [
        f"{counted(number, 'segment goes', 'segments go')} on at step {step:,} of {steps:,}"
        for (step, steps), number in sorted(counts.items())
    ]


def tell_outcome(
    outcome: Outcome, listener: Listener, store: Store, command: str, seconds: float
) -> None:
    """What this process left of a plan, and how long it took."""
    warn, say = listener.warn, listener.say
    for folder, message in outcome.failed.items():
        warn(f"failed: {folder}: {message}")
    for folder in outcome.diverged:
        why = store.named(folder).status()["message"]
        warn(f"diverged: {folder}: {why}; try other options, such as a smaller --lr")
    if outcome.elsewhere:
        others = counted(outcome.elsewhere, "segment was", "segments were")
        say(f"{others} trained by other processes")
    if outcome.skipped:
        waiting = counted(outcome.skipped, "segment waits", "segments wait")
        warn(f"{waiting} for one that is not done")
    for (step, saved), number in sorted(Counter(outcome.unsaved.values()).items()):
        stopped = counted(number, "segment was", "segments were")
        warn(f"{stopped} stopped without saving: steps {saved:,} to {step:,} are trained again")
    if outcome.interrupted:
        warn(f"stopped; to continue: {command}")
    say(_trained(outcome.trained, seconds, store))


def tell_states(plan: Plan, store: Store, listener: Listener, seconds: float) -> bool:
    """What other processes left of a plan, and how long they took; whether they finished it."""
    states = {s.folder: store.folder(s).status() for fleet in plan.fleets for s in fleet}
    for folder, status in states.items():
        if status["state"] in ("failed", "diverged", "damaged"):
            listener.warn(f"{status['state']}: {folder}: {brief(status)}")
    done = sum(status["state"] == "done" for status in states.values())
    if left := len(states) - done:
        unfinished = counted(left, "segment is", "segments are")
        listener.warn(f"{unfinished} not done; the same command continues")
    listener.say(_trained(done, seconds, store))
    return not left


def _trained(segments: int, seconds: float, store: Store) -> str:
    took = f" in {duration(seconds)}" if segments else ""
    return f"{counted(segments, 'segment')} trained{took}; results are in {store.root}"

"""A fleet to plan for, with the published networks."""

from typing import Any

from cwbench import methods
from cwbench.learner.method import Method
from cwbench.spec.config import GROUPS
from cwbench.spec.options import resolve
from cwbench.spec.segment import Segment, Setup

RUNS, ROWS = 6, 60_000


def fleet_of(name: str) -> tuple[list[Segment], type[Method[Any]]]:
    """The second task of several runs, with the published networks."""
    base, entry = methods.load(name)
    layers = ({"buffer_size": ROWS, "steps_per_task": ROWS}, entry.options, entry.method.preset)
    groups: dict[str, Any] = {key: resolve(group, *layers) for key, group in GROUPS.items()}
    setup = Setup(base, resolve(entry.method.config_class, *layers), **groups)
    return [Segment(setup, seed, ("push", "push")) for seed in range(RUNS)], entry.method

"""Plans: parents first, as few fleets as fit, groups of large ones."""

import pytest

from cwbench import sequences
from cwbench.planning.plan import Run, TooLarge, _split, groups_on_cuda, make_plan
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup, segments_of_run
from cwbench.store.results import Store

SETUP = Setup(
    "finetuning", MethodConfig(), SACConfig(), NetworkConfig(), MetaWorldConfig(), ScheduleConfig()
)


def test_plan_puts_parents_first_and_splits_evenly(tmp_path: object) -> None:
    runs = [
        Run(
            name,
            tasks,
            "x",
            "p",
            tuple(segments_of_run(SETUP, seed, tasks, needs_length=False, joint=False)),
        )
        for name in ("cw3-1", "cw3-2", "pair-0-8")
        for tasks in [sequences.get(name).tasks]
        for seed in range(5)
    ]
    plan = make_plan(runs, Store(tmp_path), 4)  # type: ignore[arg-type]
    assert [len(fleet) for fleet in plan.fleets] == [4, 3, 3, 4, 3, 3, 4, 3, 3]
    seen: set[str] = set()
    for fleet in plan.fleets:
        assert all(s.parent is None or s.parent.id in seen for s in fleet)
        seen |= {segment.id for segment in fleet}


def test_fleets_are_as_few_as_fit_and_fill_all_devices() -> None:
    group = [Segment(SETUP, seed, ("push",)) for seed in range(10)]
    sizes = lambda **how: [len(f) for f in _split(group, **how)]  # noqa: E731
    everything = lambda fleet: True  # noqa: E731
    assert sizes(size=8, fits=everything, devices=1) == [5, 5]
    assert sizes(size=8, fits=lambda fleet: len(fleet) <= 3, devices=1) == [3, 3, 2, 2]
    assert sizes(size=8, fits=everything, devices=4) == [3, 3, 2, 2]
    assert sizes(size=8, fits=everything, devices=64) == [1] * 10
    with pytest.raises(TooLarge):
        sizes(size=8, fits=lambda fleet: False, devices=1)


@pytest.mark.parametrize(
    ("runs", "sizes"), [(1, [1]), (15, [15]), (16, [8, 8]), (74, [37, 37]), (100, [34, 33, 33])]
)
def test_only_large_fleets_are_split_into_groups(runs: int, sizes: list[int]) -> None:
    fleet = [Segment(SETUP, seed, ("push",)) for seed in range(runs)]
    groups = groups_on_cuda(fleet)
    assert [len(group) for group in groups] == sizes
    assert [segment for group in groups for segment in group] == fleet

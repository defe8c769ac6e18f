"""Segments: equal beginnings are shared, anything that changes numbers changes the id."""

from dataclasses import replace
from itertools import product

import pytest

from cwbench import sequences
from cwbench.planning.plan import Run, TooLarge, _split, in_turns, make_plan
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


def ids(names: list[str], needs_length: bool = False) -> set[str]:
    found = set()
    for name in names:
        tasks = sequences.get(name).tasks
        found |= {
            s.id for s in segments_of_run(SETUP, 0, tasks, needs_length=needs_length, joint=False)
        }
    return found


def test_sequences_share_their_beginnings() -> None:
    pairs = [f"pair-{i}-{j}" for i, j in product(range(10), repeat=2)]
    assert len(ids(pairs)) == 110
    singles = [f"single-{task}" for task in sequences.CW_TASKS]
    assert len(ids([*pairs, *singles])) == 110
    assert (
        len(
            ids(
                [
                    *pairs,
                    *singles,
                    *(f"cw{n}-{k}" for n in (3, 6) for k in range(1, 9)),
                    "cw10",
                    "cw20",
                ]
            )
        )
        == 160
    )


def test_a_method_that_needs_the_length_shares_less() -> None:
    assert len(ids(["cw3-1", "cw6-1"])) == 6
    assert len(ids(["cw3-1", "cw6-1"], needs_length=True)) == 9


def test_everything_that_changes_numbers_changes_the_id() -> None:
    base = Segment(SETUP, 0, ("push", "hammer"))
    others = [
        replace(base, seed=1),
        replace(base, tasks=("hammer", "push")),
        replace(base, length=2),
        replace(base, setup=replace(SETUP, method="ewc")),
        replace(base, setup=replace(SETUP, sac=SACConfig(lr=2e-3))),
        replace(base, setup=replace(SETUP, network=NetworkConfig(width=64))),
        replace(base, setup=replace(SETUP, env=MetaWorldConfig(reward="v2"))),
        replace(base, setup=replace(SETUP, schedule=ScheduleConfig(eval_every=10))),
        replace(base, setup=replace(SETUP, source="abc")),
    ]
    assert len({base.id, *(other.id for other in others)}) == 1 + len(others)
    assert replace(base, seed=0).id == base.id
    assert base.parent is not None and base.parent.tasks == ("push",)


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
    plan = make_plan(runs, Store(tmp_path), 4, lambda segment: 0)  # type: ignore[arg-type]
    assert [len(fleet) for fleet in plan.fleets] == [4, 3, 3, 4, 3, 3, 4, 3, 3]
    seen: set[str] = set()
    for fleet in plan.fleets:
        assert all(s.parent is None or s.parent.id in seen for s in fleet)
        seen |= {segment.id for segment in fleet}


def test_fleets_are_as_few_as_fit_and_fill_all_devices() -> None:
    group = [Segment(SETUP, seed, ("push",)) for seed in range(10)]
    sizes = lambda **how: [len(f) for f in _split(group, **how)]  # noqa: E731
    everything = lambda fleet: True  # noqa: E731
    assert sizes(size=8, fits=everything, places=1) == [5, 5]
    assert sizes(size=8, fits=lambda fleet: len(fleet) <= 3, places=1) == [3, 3, 2, 2]
    assert sizes(size=8, fits=everything, places=4) == [3, 3, 2, 2]
    assert sizes(size=8, fits=everything, places=64) == [1] * 10
    with pytest.raises(TooLarge):
        sizes(size=8, fits=lambda fleet: False, places=1)


@pytest.mark.parametrize(
    ("runs", "sizes"), [(1, [1]), (15, [15]), (16, [8, 8]), (74, [37, 37]), (100, [34, 33, 33])]
)
def test_only_large_fleets_take_turns(runs: int, sizes: list[int]) -> None:
    fleet = [Segment(SETUP, seed, ("push",)) for seed in range(runs)]
    parts = in_turns(fleet)
    assert [len(part) for part in parts] == sizes
    assert [segment for part in parts for segment in part] == fleet

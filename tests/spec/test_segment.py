"""Segments: equal beginnings are shared, anything that changes numbers changes the id."""

from dataclasses import replace
from itertools import product

from cwbench import sequences
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup, recorded_id, segments_of_run

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
        replace(base, joint=True),
        replace(base, experts="finetuning"),
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


def test_a_record_tells_its_segments_id() -> None:
    """Whatever else was written into it, and with experts or without."""
    plain = Segment(SETUP, 0, ("push", "hammer"), length=3)
    for segment in (plain, replace(plain, experts="finetuning")):
        assert recorded_id(segment.record() | {"status": {"state": "done"}}) == segment.id
        assert recorded_id(segment.record() | {"seed": 1}) == replace(segment, seed=1).id

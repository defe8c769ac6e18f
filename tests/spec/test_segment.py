"""Segments: equal beginnings are shared, anything that changes numbers changes the id."""

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, get_args

from cwbench import sequences
from cwbench.spec.config import (
    GymnasiumConfig,
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import field_type, option
from cwbench.spec.segment import Segment, Setup, recorded_id, segments_of_run
from cwbench.spec.tasks import Task

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


OTHER: dict[str, Any] = {"hidden": "64,32", "log_std_range": "-5,2", "reset": "critic"}


def other_values(config: Any) -> list[Any]:
    """Copies of a group of options, each with another value of one of them."""
    found = []
    for field in fields(config):
        value, kind = getattr(config, field.name), field_type(type(config), field)
        if field.name in OTHER:
            other = OTHER[field.name]
        elif kind is bool or get_args(kind):
            other = next(one for one in (get_args(kind) or (True, False)) if one != value)
        else:
            other = 0.5 if value is None else value + 1
        found.append(replace(config, **{field.name: other}))
    return found


def test_every_option_is_part_of_the_id() -> None:
    base = Segment(SETUP, 0, ("push",))
    made = [
        replace(base, setup=replace(SETUP, **{group: other}))
        for group in ("options", "sac", "network", "env", "schedule")
        for other in other_values(getattr(SETUP, group))
    ]
    assert len(made) > 30
    assert len({base.id, *(other.id for other in made)}) == 1 + len(made)


def test_an_expert_is_the_segment_that_anyone_would_train_of_the_task_alone() -> None:
    tasks = tuple(Task(name, "Pendulum-v1", horizon=n) for name, n in (("a", 30), ("b", 20)))
    env = GymnasiumConfig(30, 3, 1, tasks)
    setup = replace(SETUP, method="students", source="abc", env=env)
    segment = Segment(setup, 3, ("a", "b"), experts="finetuning")
    alone = replace(SETUP, env=replace(env, horizon=20, tasks=tasks[1:]))
    assert segment.expert == Segment(alone, 3, ("b",))
    assert segment.parents == [replace(segment, tasks=("a",)), segment.expert]


def test_a_joint_segment_has_the_steps_of_all_tasks_and_no_parent() -> None:
    tasks = ("push", "hammer", "push")
    [joint] = segments_of_run(SETUP, 0, tasks, needs_length=True, joint=True)
    assert joint.parents == [] and joint.steps == 3 * SETUP.schedule.steps_per_task
    single = Segment(SETUP, 0, tasks)
    assert single.parents == [Segment(SETUP, 0, tasks[:2])]
    assert single.steps == SETUP.schedule.steps_per_task


def test_runs_of_a_fleet_differ_in_options_of_each_but_not_in_which_are_zero() -> None:
    @dataclass(frozen=True)
    class Own(MethodConfig):
        coef: float = option(1.0, "Weight.", per_run=True)
        samples: int = option(5, "Samples.")

    made = (Own(), Own(coef=2.0), Own(coef=0.0), Own(samples=6))
    keys = [replace(SETUP, options=own).fleet_key() for own in made]
    assert keys[0] == keys[1] and all(keys[0] != other for other in keys[2:])


def test_a_record_tells_its_segments_id() -> None:
    """Whatever else was written into it, and with experts or without."""
    plain = Segment(SETUP, 0, ("push", "hammer"), length=3)
    for segment in (plain, replace(plain, experts="finetuning")):
        assert recorded_id(segment.record() | {"status": {"state": "done"}}) == segment.id
        assert recorded_id(segment.record() | {"seed": 1}) == replace(segment, seed=1).id

"""How many steps, updates and evaluations a schedule makes, and when."""

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis.strategies import integers, none, one_of

from cwbench.spec.config import ScheduleConfig
from cwbench.spec.schedule import count_evaluations, count_updates, longest_chunk, milestones


def test_a_million_steps_make_999000_updates_and_50_evaluations() -> None:
    schedule = ScheduleConfig()
    assert count_updates(schedule, 1_000_000) == 999_000
    assert count_evaluations(schedule, 1_000_000) == 50


@pytest.mark.parametrize(
    "schedule",
    [
        ScheduleConfig(steps_per_task=300, eval_every=70, update_after=40, update_every=10),
        ScheduleConfig(steps_per_task=101, eval_every=50, update_after=0, update_every=7),
        ScheduleConfig(steps_per_task=5, eval_every=100, update_after=0, update_every=50),
    ],
)
def test_milestones_are_where_the_reference_loop_acts(schedule: ScheduleConfig) -> None:
    """The loop as published: step, then updates, then evaluation, one environment step a time."""
    expected = []
    for t in range(schedule.steps_per_task):
        updates = 0
        if t >= schedule.update_after and t % schedule.update_every == 0:
            updates = schedule.update_every
        last = t + 1 == schedule.steps_per_task
        evaluate = (t + 1) % schedule.eval_every == 0 or last
        if updates or evaluate:
            expected.append((t + 1, updates, evaluate))
    made = list(milestones(schedule, schedule.steps_per_task))
    acting = [(s.step, s.updates, s.evaluate) for s in made if s.updates or s.evaluate]
    assert acting == expected
    steps = [0, *(milestone.step for milestone in made)]
    assert max(b - a for a, b in pairwise(steps)) <= longest_chunk(schedule, steps[-1])


@given(
    steps=integers(1, 300),
    eval_every=integers(1, 400),
    update_after=integers(0, 400),
    update_every=integers(1, 100),
    expert_steps=one_of(none(), integers(0, 300)),
)
def test_counts_are_those_of_the_milestones(
    steps: int, eval_every: int, update_after: int, update_every: int, expert_steps: int | None
) -> None:
    schedule = ScheduleConfig(
        eval_every=eval_every, update_after=update_after, update_every=update_every
    )
    when = (schedule, steps, None if expert_steps is None else min(expert_steps, steps))
    assert count_updates(*when) == sum(one.updates for one in milestones(*when))
    assert count_evaluations(*when) == sum(one.evaluate for one in milestones(*when))


def test_a_schedule_of_a_hundred_million_milestones_takes_no_time_to_begin() -> None:
    schedule, steps = ScheduleConfig(eval_every=1, update_after=0, update_every=1), 10**8
    assert [one.step for one in islice(milestones(schedule, steps), 3)] == [1, 2, 3]
    assert count_updates(schedule, steps) == count_evaluations(schedule, steps) == 10**8

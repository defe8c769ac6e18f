"""How far a plan has come, and how long the rest will take."""

import io
import weakref

from rich.console import Console
from shown_groups import clock, make_group, steps_of

from cwbench.fleet.displays import Lines
from cwbench.fleet.progress import Progress, Speed
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.forecast import Forecast, steps_alone

__all__ = ["clock"]


def test_a_forecast_waits_until_there_is_one(clock: list[float]) -> None:
    """1000 steps of two runs at 5 steps/s each, after a first chunk that took a minute."""
    text = io.StringIO()
    group = make_group(1000)
    lines = Lines(steps_of(group), Console(file=text))
    lines.begin([group])
    clock[0], group.step = 60, 50
    lines.advance(group)
    first = text.getvalue()
    assert "ewc task 2 (2 tasks): step 50/1000, 2 runs, success 0.25 (0.00 to 0.50)" in first
    assert "left" not in first and "steps/s" not in first
    for _ in range(8):
        clock[0], group.step = clock[0] + 10, group.step + 50
        lines.advance(group)
    last = text.getvalue().splitlines()[-1]
    # Eight times ten seconds later, with lines every 30: the last was after six of them.
    assert "step 350/1000" in last
    assert last.endswith("700 of 2,000 steps, 10 steps/s, about 2 min 10 s left")


def test_measurement_starts_when_all_fleets_have_made_updates(clock: list[float]) -> None:
    """Compilation takes five minutes; then there are 10 steps/s."""
    groups = [make_group(1000), make_group(1000)]
    lines = Lines(steps_of(*groups), Console(file=io.StringIO()))
    lines.begin(groups)
    groups[1].settled = False
    for group in groups:
        group.step = 50
        lines.advance(group)
    clock[0], groups[1].settled = 300, True
    for _ in range(6):
        for group in groups:
            lines.advance(group)
            group.step += 50
        clock[0] += 20
    assert lines.summary().endswith("about 4 min 20 s left")  # 2,600 steps


def test_a_fleet_that_begins_again_is_to_be_done_again(clock: list[float]) -> None:
    """One without memory is split; another fails for good; a third was trained elsewhere."""
    split, failed, other, half = (make_group(1000) for _ in range(4))
    lines = Lines(steps_of(split, failed, other), Console(file=io.StringIO()))
    lines.begin([split, failed])
    for group in (split, failed):
        group.step = 100
        lines.advance(group)
    lines.end([split, failed], again={segment.id for segment in split.segments})
    assert lines.steps() == (400, 4400)  # 200 steps each were made; two fleets are left
    half.segments = split.segments
    lines.begin([half])
    assert lines.steps() == (400, 4400)
    for segment in other.segments:
        lines.leave(segment)
    half.step = 600
    lines.advance(half)
    assert lines.steps() == (1600, 2400)
    assert lines.state().left == dict.fromkeys((segment.id for segment in split.segments), 400)


def test_steps_of_a_snapshot_are_not_speed(clock: list[float]) -> None:
    text = io.StringIO()
    first, second = make_group(1000), make_group(1000)
    resumed = {segment.id: 500 for segment in second.segments}
    lines = Lines(steps_of(first, second, resumed=resumed), Console(file=text))
    assert lines.steps() == (1000, 4000)
    lines.begin([first])
    for _ in range(3):
        clock[0], first.step = clock[0] + 10, first.step + 50
        lines.advance(first)
    second.step = 500  # continued
    lines.begin([second])
    clock[0] += 10
    lines.advance(second)
    assert "1,300 of 4,000 steps, 7 steps/s" in text.getvalue()  # 200 steps in 30 seconds


def test_a_pause_without_steps_does_not_spoil_the_forecast(clock: list[float]) -> None:
    """100 s at 10 steps/s, then 900 s of retraining."""
    text = io.StringIO()
    first, second = make_group(500), make_group(1500)
    lines = Lines(steps_of(first, second), Console(file=text))
    lines.begin([first])
    lines.advance(first)
    for _ in range(10):
        clock[0], first.step = clock[0] + 10, first.step + 50
        lines.advance(first)
    clock[0] += 900
    lines.advance(first)
    assert lines.summary().endswith("1,000 of 4,000 steps, about 50 min left")


def test_steps_that_an_expert_made_are_not_counted(clock: list[float]) -> None:
    """Of 1,000 steps a run makes the last hundred itself, as its plan says."""
    group = make_group(1000)
    plan = Forecast(
        [group.segments], [steps_alone(group.segments, 100)], Parallelism(), measured=False
    )
    lines = Lines(plan, Console(file=io.StringIO()))
    assert lines.steps() == (0, plan.steps) == (0, 200)
    group.step = 900
    lines.begin([group])
    assert lines.steps() == (0, 200)
    group.step = 950
    lines.advance(group)
    assert lines.steps() == (100, 200)


def test_nothing_is_kept_of_groups_that_have_ended(clock: list[float]) -> None:
    """A plan may have thousands, and a speed remembers every chunk of a minute."""
    group = make_group(1000)
    progress = Progress(steps_of(group), Console(file=io.StringIO()))
    measured: list[weakref.ref[Speed]] = []
    progress.begin([group])
    measured += map(weakref.ref, progress._speeds.values())
    progress.advance(group)
    progress.end([group])
    assert [speed() for speed in measured] == [None]

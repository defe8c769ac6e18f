"""What a training run shows."""

import io
import itertools
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cwbench.fleet.progress import (
    Elsewhere,
    Lines,
    NotebookBar,
    Quiet,
    Row,
    Screen,
    make_progress,
)
from cwbench.fleet.state import RunState
from cwbench.planning.fleet_time import FleetNeeds, Parallelism
from cwbench.planning.forecast import Forecast, steps_alone

NUMBERS = itertools.count()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time that progress sees, to be changed in place."""
    now = [0.0]
    with monkeypatch.context() as patch:
        patch.setattr("cwbench.fleet.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
        yield now


def make_fleet(steps: int, method: str = "ewc", successes: Sequence[float] = (0.0, 0.5)) -> Any:
    """Of two runs, past its first updates."""
    number = next(NUMBERS)
    segments = [
        SimpleNamespace(id=f"{number}{task}", tasks=("a", task), steps=steps, parents=())
        for task in "bc"
    ]
    return SimpleNamespace(
        step=0,
        steps=steps,
        runs=2,
        position=1,
        settled=True,
        retraining=None,
        ended=False,
        setup=SimpleNamespace(method=method),
        segments=segments,
        state=SimpleNamespace(runs=[RunState(last_success=success) for success in successes]),
    )


def steps_of(*fleets: Any, resumed: Any = None) -> Forecast:
    """Without an estimate, all steps count alike."""
    segments = [fleet.segments for fleet in fleets]
    needs = [steps_alone(fleet.segments, fleet.steps) for fleet in fleets]
    return Forecast(segments, needs, Parallelism(), resumed, measured=False)


def test_a_forecast_waits_until_there_is_one(clock: list[float]) -> None:
    """1000 steps of two runs at 5 steps/s each, after a first chunk that took a minute."""
    text = io.StringIO()
    fleet = make_fleet(1000)
    lines = Lines(steps_of(fleet), Console(file=text))
    lines.begin([fleet])
    clock[0], fleet.step = 60, 50
    lines.advance(fleet)
    first = text.getvalue()
    assert "ewc task 2 (2 tasks): step 50/1000, 2 runs, success 0.25 (0.00 to 0.50)" in first
    assert "left" not in first and "steps/s" not in first
    for _ in range(8):
        clock[0], fleet.step = clock[0] + 10, fleet.step + 50
        lines.advance(fleet)
    last = text.getvalue().splitlines()[-1]
    # Eight times ten seconds later, with lines every 30: the last was after six of them.
    assert "step 350/1000" in last
    assert last.endswith("700 of 2,000 steps, 10 steps/s, about 2 min 10 s left")


def test_measurement_starts_when_all_fleets_have_made_updates(clock: list[float]) -> None:
    """Compilation takes five minutes; then there are 10 steps/s."""
    fleets = [make_fleet(1000), make_fleet(1000)]
    lines = Lines(steps_of(*fleets), Console(file=io.StringIO()))
    lines.begin(fleets)
    fleets[1].settled = False
    for fleet in fleets:
        fleet.step = 50
        lines.advance(fleet)
    clock[0], fleets[1].settled = 300, True
    for _ in range(6):
        for fleet in fleets:
            lines.advance(fleet)
            fleet.step += 50
        clock[0] += 20
    assert lines.summary().endswith("about 4 min 20 s left")  # 2,600 steps


def test_a_fleet_that_begins_again_is_to_be_done_again(clock: list[float]) -> None:
    """One without memory is split; another fails for good; a third was trained elsewhere."""
    split, failed, other, half = (make_fleet(1000) for _ in range(4))
    lines = Lines(steps_of(split, failed, other), Console(file=io.StringIO()))
    lines.begin([split, failed])
    for fleet in (split, failed):
        fleet.step = 100
        lines.advance(fleet)
    lines.end([split, failed])
    assert lines.steps() == (400, 2400)  # 200 steps each were made; the third fleet is left
    half.segments = split.segments
    lines.begin([half])
    assert lines.steps() == (400, 4400)
    for segment in other.segments:
        lines.leave(segment)
    half.step = 600
    lines.advance(half)
    assert lines.steps() == (1600, 2400)
    assert lines.left() == dict.fromkeys((segment.id for segment in split.segments), 400)


def test_the_last_line_has_the_last_evaluation(clock: list[float]) -> None:
    """It comes when all steps are done."""
    text = io.StringIO()
    fleet = make_fleet(1000, successes=(0.0, 0.0))
    lines = Lines(steps_of(fleet), Console(file=text))
    lines.begin([fleet])
    lines.advance(fleet)
    clock[0], fleet.step = 10, 1000
    lines.advance(fleet)
    fleet.ended, fleet.state.runs = True, [RunState(last_success=1.0)] * 2
    lines.advance(fleet)
    lines.advance(fleet)
    first, last = text.getvalue().splitlines()
    assert "step 0/1000" in first
    assert "step 1000/1000, 2 runs, success 1.00" in last
    assert lines.left() == {}


def test_steps_of_a_snapshot_are_not_speed(clock: list[float]) -> None:
    text = io.StringIO()
    first, second = make_fleet(1000), make_fleet(1000)
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
    first, second = make_fleet(500), make_fleet(1500)
    lines = Lines(steps_of(first, second), Console(file=text))
    lines.begin([first])
    lines.advance(first)
    for _ in range(10):
        clock[0], first.step = clock[0] + 10, first.step + 50
        lines.advance(first)
    clock[0] += 900
    lines.advance(first)
    assert lines.summary().endswith("1,000 of 4,000 steps, about 50 min left")


def table_of(screen: Screen) -> list[list[str]]:
    text = io.StringIO()
    Console(file=text, width=200).print(screen.table())
    lines = text.getvalue().split("\n")
    return [[lines[0].strip()], *([cell.strip() for cell in x.split("│")[1:-1]] for x in lines)]


def test_a_table_has_a_row_for_every_fleet(clock: list[float]) -> None:
    fleets = [make_fleet(1000), make_fleet(1000, "recall", (0.5, 0.5))]
    screen = Screen(steps_of(*fleets), Console(file=io.StringIO()))
    screen.begin(fleets)
    for _ in range(2):
        clock[0] += 20
        for fleet, steps in zip(fleets, (100, 200), strict=True):
            fleet.step += steps
            screen.advance(fleet)
    rows = table_of(screen)
    own = ["ewc", "2 (2 tasks)", "2", "200/1,000", "0.25 (0.00 to 0.50)", "10", "2 min 40 s"]
    assert own in rows
    assert ["recall", "2 (2 tasks)", "2", "400/1,000", "0.50", "20", "1 min"] in rows
    assert rows[0][0].startswith("1,200 of 4,000 steps")  # 2 * 200 + 2 * 400


def test_fleets_elsewhere_are_forecast_like_those_here(clock: list[float]) -> None:
    """A quick fleet of 100 s and a slow one of 900 s, planned at half of that.

    After 100 s of measurement, 1,000 of 2,000 steps are made, and a fifth of the time is over.
    """
    quick, slow = make_fleet(500), make_fleet(500)
    needs = [FleetNeeds(1000, 0, 0, 0, 0, seconds, 0.0, 0.0) for seconds in (50.0, 450.0)]
    plan = Forecast([quick.segments, slow.segments], needs, Parallelism())
    screen = Screen(plan, Console(file=io.StringIO()))
    left = {segment.id: 500 for fleet in (quick, slow) for segment in fleet.segments}
    seen = [Elsewhere((), left)]
    screen.watch(lambda: seen[0])
    clock[0] = 30  # compiling
    assert screen.summary() == "0 of 2,000 steps, about 8 min 20 s left"
    seen[0] = Elsewhere((), left, settled=True)
    assert screen.summary() == "0 of 2,000 steps, about 8 min 20 s left"
    clock[0] = 130
    row = Row("packnet", "1 a", 2, 0, 500, [0.25], 20.0)
    seen[0] = Elsewhere([row], {segment.id: 500 for segment in slow.segments}, settled=True)
    rows = table_of(screen)
    assert ["packnet", "1 a", "2", "0/500", "0.25", "20", "50 s"] in rows
    # 450 s * (100 + 60) / (50 + 60), between what was planned and the 900 s to come
    assert rows[0] == ["1,000 of 2,000 steps, 20 steps/s, about 10 min 55 s left"]


def test_retraining_is_shown_and_shortens_the_time_left(clock: list[float]) -> None:
    """100 s of steps and 300 s of updates at the task's end, as planned."""
    text = io.StringIO()
    fleet = make_fleet(1000)
    needs = FleetNeeds(2000, 0, 0, 0, 0, 100.0, 0.0, 0.0, end_seconds=300.0)
    plan = Forecast([fleet.segments], [needs], Parallelism())
    lines = Lines(plan, Console(file=text))
    lines.begin([fleet])
    lines.advance(fleet)
    clock[0], fleet.step = 100.0, 1000
    for clock[0], made in ((100.0, 0), (175.0, 25_000), (250.0, 50_000)):
        fleet.retraining = made, 100_000
        lines.advance(fleet)
    *_, before, last = text.getvalue().splitlines()
    assert "ewc task 2 (2 tasks): at the task's end, 25,000 of 100,000 updates, 2 runs" in before
    assert before.endswith("2,000 of 2,000 steps, about 3 min 45 s left")
    assert last.endswith("2,000 of 2,000 steps, about 2 min 30 s left")
    [row] = lines.rows()
    assert row.left == "-"


def test_steps_that_an_expert_made_are_not_counted(clock: list[float]) -> None:
    """Of 1,000 steps a run makes the last hundred itself, as its plan says."""
    fleet = make_fleet(1000)
    plan = Forecast(
        [fleet.segments], [steps_alone(fleet.segments, 100)], Parallelism(), measured=False
    )
    lines = Lines(plan, Console(file=io.StringIO()))
    assert lines.steps() == (0, plan.steps) == (0, 200)
    fleet.step = 900
    lines.begin([fleet])
    assert lines.steps() == (0, 200)
    fleet.step = 950
    lines.advance(fleet)
    assert lines.steps() == (100, 200)


def test_the_place_decides_how_progress_is_shown() -> None:
    """A live table on a terminal, a bar in a notebook, lines in a log."""
    for console, kind in (
        (Console(force_terminal=True, force_jupyter=False), Screen),
        (Console(force_jupyter=True), NotebookBar),
        (Console(force_terminal=False, force_jupyter=False), Lines),
    ):
        assert type(make_progress(steps_of(), console, quiet=False)) is kind
        assert type(make_progress(steps_of(), console, quiet=True)) is Quiet


def test_a_notebooks_bar_counts_the_steps_of_all_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda content, raw: shown.append(content))

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        shown.append(content)
        return handle

    monkeypatch.setattr("IPython.display.display", display)
    fleets, other = [make_fleet(steps=20) for _ in range(2)], make_fleet(steps=10)
    plan = steps_of(*fleets, other)
    with make_progress(plan, Console(force_jupyter=True), quiet=False) as bar:
        for fleet in fleets:
            bar.begin([fleet])
            fleet.step = 20
            bar.advance(fleet)
            bar.end([fleet])
        for segment in other.segments:  # another process trained the rest
            bar.leave(segment)
        bar.wait(3)
    assert shown[0]["text/plain"].startswith("0 of 100 steps")
    assert shown[-1]["text/plain"].startswith("80 of 80 steps")
    assert shown[-1]["text/plain"].endswith(
        "waiting for 3 segments that other processes are training"
    )
    assert '<progress value="80" max="80">' in shown[-1]["text/html"]

"""What a training run shows."""

import errno
import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from shown_groups import clock, make_group, steps_of

from cwbench.fleet.displays import Lines, NotebookBar, Screen, make_progress
from cwbench.fleet.progress import Display, PlanState, Row
from cwbench.fleet.state import RunState
from cwbench.planning.fleet_time import FleetNeeds, Parallelism
from cwbench.planning.forecast import Forecast

__all__ = ["clock"]


def test_the_last_line_has_the_last_evaluation(clock: list[float]) -> None:
    """It comes when all steps are done."""
    text = io.StringIO()
    group = make_group(1000, successes=(0.0, 0.0))
    lines = Lines(steps_of(group), Console(file=text))
    lines.begin([group])
    lines.advance(group)
    clock[0], group.step = 10, 1000
    lines.advance(group)
    group.ended, group.state.runs = True, [RunState(last_success=1.0)] * 2
    lines.advance(group)
    lines.advance(group)
    first, last = text.getvalue().splitlines()
    assert "step 0/1000" in first
    assert "step 1000/1000, 2 runs, success 1.00" in last
    assert lines.state().left == {}


def test_a_fleet_at_the_address_of_an_ended_one_is_shown(clock: list[float]) -> None:
    """Python uses memory again, so a later group may have the id of an earlier one."""
    text = io.StringIO()
    group = make_group(1000)
    lines = Lines(steps_of(group), Console(file=text))
    for method in ("ewc", "recall"):
        group.setup.method, group.step, group.ended = method, 0, False
        lines.begin([group])
        lines.advance(group)
        group.step, group.ended = 1000, True
        lines.advance(group)
        lines.end([group])
    shown = [line.split(", ")[0] for line in text.getvalue().splitlines()]
    assert shown == [
        f"{method} task 2 (2 tasks): step {step}/1000"
        for method in ("ewc", "recall")
        for step in (0, 1000)
    ]


def test_a_log_that_cannot_be_written_ends_no_training(clock: list[float]) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    group = make_group(1000, successes=(0.0, 0.0))
    lines = Lines(steps_of(group), Console(file=Full()))
    lines.begin([group])
    for clock[0], group.step in ((40, 500), (80, 1000)):
        lines.advance(group)
    assert lines.steps() == (2000, 2000)  # of two runs


def table_of(screen: Screen) -> list[list[str]]:
    text = io.StringIO()
    Console(file=text, width=200).print(screen.table())
    lines = text.getvalue().split("\n")
    return [[lines[0].strip()], *([cell.strip() for cell in x.split("│")[1:-1]] for x in lines)]


def test_a_table_has_a_row_for_every_fleet(clock: list[float]) -> None:
    groups = [make_group(1000), make_group(1000, "recall", (0.5, 0.5))]
    screen = Screen(steps_of(*groups), Console(file=io.StringIO()))
    screen.begin(groups)
    for _ in range(2):
        clock[0] += 20
        for group, steps in zip(groups, (100, 200), strict=True):
            group.step += steps
            screen.advance(group)
    rows = table_of(screen)
    own = ["ewc", "2 (2 tasks)", "2", "200/1,000", "0.25 (0.00 to 0.50)", "10", "2 min 40 s"]
    assert own in rows
    assert ["recall", "2 (2 tasks)", "2", "400/1,000", "0.50", "20", "1 min"] in rows
    assert rows[0][0].startswith("1,200 of 4,000 steps")  # 2 * 200 + 2 * 400


def test_fleets_elsewhere_are_forecast_like_those_here(clock: list[float]) -> None:
    """A quick fleet of 100 s and a slow one of 900 s, planned at half of that.

    After 100 s of measurement, 1,000 of 2,000 steps are made, and a fifth of the time is over.
    """
    quick, slow = make_group(500), make_group(500)
    needs = [FleetNeeds(1000, 0, 0, 0, 0, seconds, 0.0, 0.0) for seconds in (50.0, 450.0)]
    plan = Forecast([quick.segments, slow.segments], needs, Parallelism())
    screen = Screen(plan, Console(file=io.StringIO()))
    left = {segment.id: 500 for group in (quick, slow) for segment in group.segments}
    seen = [PlanState((), left)]
    screen.watch(lambda: seen[0])
    clock[0] = 30  # compiling
    assert screen.summary() == "0 of 2,000 steps, about 8 min 20 s left"
    seen[0] = PlanState((), left, settled=True)
    assert screen.summary() == "0 of 2,000 steps, about 8 min 20 s left"
    clock[0] = 130
    row = Row("packnet", "1 a", 2, 0, 500, [0.25], 20.0)
    left = {segment.id: 500 for segment in slow.segments}
    seen[0] = PlanState([row], left, settled=True, made=1000, speed=20.0)
    rows = table_of(screen)
    assert ["packnet", "1 a", "2", "0/500", "0.25", "20", "50 s"] in rows
    # 450 s * (100 + 60) / (50 + 60), between what was planned and the 900 s to come
    assert rows[0] == ["1,000 of 2,000 steps, 20 steps/s, about 10 min 55 s left"]


def test_retraining_is_shown_and_shortens_the_time_left(clock: list[float]) -> None:
    """100 s of steps and 300 s of updates at the task's end, as planned."""
    text = io.StringIO()
    group = make_group(1000)
    needs = FleetNeeds(2000, 0, 0, 0, 0, 100.0, 0.0, 0.0, end_seconds=300.0)
    plan = Forecast([group.segments], [needs], Parallelism())
    lines = Lines(plan, Console(file=text))
    lines.begin([group])
    lines.advance(group)
    clock[0], group.step = 100.0, 1000
    for clock[0], made in ((100.0, 0), (175.0, 25_000), (250.0, 50_000)):
        group.retraining = made, 100_000
        lines.advance(group)
    *_, before, last = text.getvalue().splitlines()
    assert "ewc task 2 (2 tasks): at the task's end, 25,000 of 100,000 updates, 2 runs" in before
    assert before.endswith("2,000 of 2,000 steps, about 3 min 45 s left")
    assert last.endswith("2,000 of 2,000 steps, about 2 min 30 s left")
    [row] = lines.state().rows
    assert row.left == "-"


def test_the_place_decides_how_progress_is_shown() -> None:
    """A live table on a terminal, a bar in a notebook, lines in a log.

    Lines also on a terminal that cannot redraw, as in an editor, or is too narrow for the table.
    """
    xterm, dumb = {"TERM": "xterm"}, {"TERM": "dumb"}
    for console, kind in (
        (Console(force_terminal=True, force_jupyter=False, width=80, _environ=xterm), Screen),
        (Console(force_terminal=True, force_jupyter=False, width=40, _environ=xterm), Lines),
        (Console(force_terminal=True, force_jupyter=False, width=80, _environ=dumb), Lines),
        (Console(force_jupyter=True), NotebookBar),
        (Console(force_terminal=False, force_jupyter=False), Lines),
    ):
        assert type(make_progress(steps_of(), console, quiet=False)) is kind
        assert type(make_progress(steps_of(), console, quiet=True)) is Display


def test_a_notebooks_bar_counts_the_steps_of_all_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda content, raw: shown.append(content))

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        shown.append(content)
        return handle

    monkeypatch.setattr("IPython.display.display", display)
    groups, other = [make_group(steps=20) for _ in range(2)], make_group(steps=10)
    plan = steps_of(*groups, other)
    with make_progress(plan, Console(force_jupyter=True), quiet=False) as bar:
        for group in groups:
            bar.begin([group])
            group.step = 20
            bar.advance(group)
            bar.end([group])
        for segment in other.segments:  # another process trained the rest
            bar.leave(segment)
        bar.wait(3)
    assert shown[0]["text/plain"].startswith("0 of 100 steps")
    assert shown[-1]["text/plain"].startswith("80 of 80 steps")
    assert shown[-1]["text/plain"].endswith(
        "waiting for 3 segments that other processes are training"
    )
    assert '<progress value="80" max="80">' in shown[-1]["text/html"]


def test_no_empty_table_is_left_on_the_screen() -> None:
    """All its lines are erased: as many as were drawn."""
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    with Screen(steps_of(), terminal) as screen:
        lines = len(terminal.render_lines(screen.table()))
    *_, last = text.getvalue().rpartition("\n")
    assert last.count("\x1b[2K") == lines > 0

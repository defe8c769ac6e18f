"""What a training run shows."""

from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cwbench.fleet.progress import Lines, NotebookBar, Quiet, Screen, make_progress


def test_the_place_decides_how_progress_is_shown() -> None:
    """A live table on a terminal, a bar in a notebook, lines in a log."""
    for console, kind in (
        (Console(force_terminal=True, force_jupyter=False), Screen),
        (Console(force_jupyter=True), NotebookBar),
        (Console(force_terminal=False, force_jupyter=False), Lines),
    ):
        assert type(make_progress(10, console, quiet=False)) is kind
        assert type(make_progress(10, console, quiet=True)) is Quiet


def test_a_notebooks_bar_counts_the_steps_of_all_fleets(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda content, raw: shown.append(content))

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        shown.append(content)
        return handle

    monkeypatch.setattr("IPython.display.display", display)
    with make_progress(100, Console(force_jupyter=True), quiet=False) as bar:
        for _ in range(2):  # two fleets of two runs, 20 steps each
            fleet: Any = SimpleNamespace(step=0, steps=20, runs=2)
            bar.begin([fleet])
            fleet.step = 20
            bar.advance(fleet)
        bar.leave(20)  # another process trained the rest
        bar.wait(3)
    assert shown[0]["text/plain"].startswith("0 of 100 steps")
    assert shown[-1]["text/plain"].startswith("80 of 80 steps")
    assert shown[-1]["text/plain"].endswith(
        "waiting for 3 segments that other processes are training"
    )
    assert '<progress value="80" max="80">' in shown[-1]["text/html"]

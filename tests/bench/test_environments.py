"""`cwbench bench envs --against envpool`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from cwbench.bench import environments
from cwbench.bench.environments import our_turn, pool_turn, speeds, summarise, take_turns
from cwbench.cli import cli
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import METAWORLD_TASKS


def test_contenders_take_turns_until_the_time_is_used() -> None:
    order = []

    def contender(name: str, clock: float) -> Any:
        def turn() -> tuple[float, float]:
            order.append(name)
            return clock, 0.1

        return turn

    turns = take_turns([contender("ours", 1.0), contender("pool", 2.0)], 8.5)
    assert order == ["ours", "pool"] * 3
    assert turns == [[(1.0, 0.1), (2.0, 0.1)]] * 3
    assert len(take_turns([contender("ours", 1.0)], 0.01)) == 2


def test_speeds_are_those_of_the_fastest_turn() -> None:
    """3200 steps in 1 s (CPU: 0.5 s) against 2 s (CPU: 1.6 s)."""
    found = speeds([[(1.0, 0.8), (4.0, 1.6)], [(3.0, 0.5), (2.0, 3.2)]])
    assert found == {
        "ours": 3200,
        "envpool": 1600,
        "ratio": 2,
        "ours_cpu": 6400,
        "envpool_cpu": 2000,
        "ratio_cpu": 3.2,
    }


def rows(tasks: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    for task, clock in zip(tasks, (1.0, 2.0), strict=True):
        yield {"task": task, **speeds([[(1.0, 1.0), (clock, 3 * clock)]])}


def test_summary_has_mean_and_minimum() -> None:
    assert summarise(list(rows(["push", "sweep"], 1))) == {
        "mean": {"ratio": 1.5, "ratio_cpu": 4.5},
        "minimum": {"ratio": 1.0, "ratio_cpu": 3.0},
    }


def test_the_command_prints_both_ratios_and_how_envpool_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environments, "compare_environments", rows)
    command = ["bench", "envs", "--against", "envpool", "--tasks", "push,sweep"]
    text = CliRunner().invoke(cli, command).output
    lines = [line.split() for line in text.splitlines()]
    assert ["sweep", "3200", "1600", "2.00", "3200", "533", "6.00"] in lines
    assert ["mean", "1.50", "4.50"] in lines and ["minimum", "1.00", "3.00"] in lines
    assert "hides the goal by default" in text
    table = json.loads(CliRunner().invoke(cli, [*command, "--json"]).output)
    assert [row["task"] for row in table["tasks"]] == ["push", "sweep"]
    assert table["minimum"]["ratio"] == 1 and len(table["notes"]) == 4


def test_a_missing_envpool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "is_installed", lambda name: False)
    with pytest.raises(UserError, match="EnvPool is not installed: pip install"):
        next(environments.compare_environments(["push"], 1))


def test_our_turn_runs_whole_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ENVS", 2)
    assert min(our_turn("reach")) > 0
    env = environments._our_env("reach")
    with pytest.raises(RuntimeError, match="no episode of reach is running"):
        env.step(environments.ACTIONS[0, 0])


@pytest.mark.slow
def test_envpool_has_all_fifty_tasks_and_a_turn_is_whole_episodes() -> None:
    envpool = pytest.importorskip("envpool")
    known = {name for name in envpool.list_all_envs() if name.startswith("MetaWorld/")}
    assert known == {f"MetaWorld/{task.title().replace('-', '')}-v3" for task in METAWORLD_TASKS}
    assert min(pool_turn("reach")) > 0
    pool = environments._pool("reach")
    obs, *_, info = pool.step(environments.ACTIONS[0])
    assert obs.shape == (16, 39) and not info["elapsed_step"].any()  # a reset
    assert obs[:, 36:].any(axis=1).all()  # the goal

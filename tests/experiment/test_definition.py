"""The paper's experiments, and files of one's own."""

import re
from pathlib import Path
from typing import Any

import pytest
from experiment_file import FILE

from cwbench.experiment.definition import Experiment, names, read
from cwbench.planning.plan import make_plan
from cwbench.store.results import Store

SIX = ["finetuning", "ewc", "packnet", "clonex", "perfect-memory", "recall"]


def setups(one: Experiment) -> dict[str, Any]:
    """Label -> setup."""
    return {run.label: run.segments[-1].setup for run in one.runs()[0]}


@pytest.mark.parametrize(
    ("name", "runs", "million_steps"),
    [  # the paper's own count of runs and training steps, 5 seeds throughout
        ("pairs", 1000, 2000),
        ("cw3", 240, 720),
        ("cw6", 240, 1440),
        ("ablation", 160, 960),
        ("cw10", 30, 300),
        ("cw20", 30, 600),
        ("sharing", 20, 40),
        ("online-replay", 130, 260),
        ("lambda", 25, 150),
        ("reference", 50, 50),
    ],
)
def test_experiments_have_the_papers_runs(name: str, runs: int, million_steps: int) -> None:
    one = read(name)
    found, _ = one.runs()
    assert len(found) == len(one) == runs
    assert sum(s.steps for run in found for s in run.segments) == million_steps * 10**6
    assert one.protocol.name == "paper" and one.seeds == (0, 1, 2, 3, 4) and one.description


def test_experiments_have_the_papers_methods_and_settings() -> None:
    for name in ("cw3", "cw6", "cw10", "cw20"):
        assert list(setups(read(name))) == SIX
    assert list(setups(read("pairs"))) == ["perfect-memory", "recall"]
    lambdas = [setup.options.lambda_ for setup in setups(read("lambda")).values()]
    assert lambdas == [0.01, 0.1, 1.0, 10.0, 100.0]
    switches = {
        k: (s.options.popart, s.options.distill) for k, s in setups(read("ablation")).items()
    }
    assert switches == {
        "recall-none": (False, False),
        "recall-tn": (True, False),
        "recall-pd": (False, True),
        "recall": (True, True),
    }
    heads = [
        (s.network.actor_head_layers, s.network.critic_head_layers)
        for s in setups(read("sharing")).values()
    ]
    assert heads == [(0, 0), (4, 0), (0, 4), (4, 4)]
    modes = [s.options.replay_mode for s in setups(read("online-replay")).values()]
    assert modes == ["offline", "online"]
    assert sorted(names()) == sorted(file.stem for file in EXPERIMENTS.glob("*.toml"))
    assert len(names()) == 10


EXPERIMENTS = Path(__file__).parents[2] / "cwbench" / "experiment" / "paper"


def plan_of(*wanted: str, seeds: str = "0") -> Any:
    runs = [run for name in wanted for run in read(name).changed(None, seeds).runs()[0]]
    return make_plan(runs, Store(Path("nowhere")), 100)


def test_experiments_share_segments() -> None:
    """What the paper's new steps are: the same run in two experiments is trained once."""
    assert len(plan_of("cw6", "lambda").segments) == len(plan_of("cw6").segments) + 4 * 6
    only = plan_of("ablation").segments
    shared = len(plan_of("cw6", "ablation").segments) - len(plan_of("cw6").segments)
    assert shared == len(only) * 3 // 4
    assert len(plan_of("pairs", "sharing").segments) == 220 + 3 * 2
    # Offline is part of the pairs; the first task online is another setting, so trained again.
    firsts = {s.tasks[0] for s in plan_of("online-replay").segments}
    assert len(plan_of("pairs", "online-replay").segments) == 220 + 13 + len(firsts)
    assert len(plan_of("cw3", "reference").segments) == len(plan_of("cw3").segments) + 4


def test_a_sweep_is_one_fleet_per_position() -> None:
    plan = plan_of("lambda", seeds="0-4")
    assert [len(fleet) for fleet in plan.fleets] == [25] * 6


def test_a_users_file(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(FILE)
    one = read(str(file))
    assert one.name == "mine" and one.seeds == (0, 2) and one.protocol.name == "smoke"
    made = setups(one)
    assert list(made) == ["recall (lambda=1.0)", "recall"]  # 10 is the default
    assert [setup.schedule.steps_per_task for setup in made.values()] == [400, 400]
    assert [setup.network.width for setup in made.values()] == [32, 32]  # the protocol's
    other = read(str(file)).changed("paper", "7")
    assert other.seeds == (7,) and other.runs()[0][0].protocol == "paper"
    # A whole number for a float option means the same setting as the float: equal ids.
    same = tmp_path / "same.toml"
    same.write_text(FILE.replace("[1, 10]", "[1.0, 10.0]"))
    assert [r.record() for r in read(str(same)).runs()[0]] == [r.record() for r in one.runs()[0]]


def test_sweeps_multiply_and_are_named(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        'sequences = ["cw3-1"]\n[[methods]]\nname = "pm"\nunshared = ["none", "critic"]\n'
        "options.lr = [0.001, 0.01]\noptions.width = 64\n"
    )
    assert list(setups(read(str(file)))) == [
        "perfect-memory (width=64)",
        "perfect-memory (width=64, unshared critic)",
        "perfect-memory (lr=0.01, width=64)",
        "perfect-memory (lr=0.01, width=64, unshared critic)",
    ]


def test_a_methods_own_options_win_over_those_of_all(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        'sequences = ["cw3-1"]\noptions = {width = 64, lr = [0.01, 0.1]}\n'
        'methods = ["ewc", {name = "l2", options = {lr = 0.05}}]\n'
    )
    chosen = [
        (run.segments[0].setup.method, run.segments[0].setup.sac.lr)
        for run in read(str(file)).runs()[0]
    ]
    assert chosen == [("ewc", 0.01), ("ewc", 0.1), ("l2", 0.05)]


def test_values_of_an_environments_option_are_told_apart(tmp_path: Path) -> None:
    """A label names such an option only where there are several values."""
    file = tmp_path / "my.toml"
    for value, labels in (
        ('["cw_v1", "v2"]', ["ewc", "ewc (reward=v2)"]),
        ('"v2"', ["ewc"]),
    ):
        file.write_text(f'sequences = ["cw3-1"]\nmethods = ["ewc"]\noptions.reward = {value}\n')
        assert list(setups(read(str(file)))) == labels


def test_a_sequence_that_is_named_twice_is_trained_once(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('sequences = ["cw3-2", "cw3-1", "cw3-2"]\nmethods = ["ewc"]\n')
    found = [run.sequence for run in read(str(file)).runs()[0]]
    assert found == ["cw3-2", "cw3-1"]


def test_the_page_on_reproducing_counts_the_segments() -> None:
    page = Path(__file__).parents[2] / "docs" / "reproducing.md"
    rows = re.findall(r"`cwbench experiment ([\w -]+)` \| (\d+) \|", page.read_text("utf-8"))
    assert {name for group, _ in rows for name in group.split()} == {*names()}
    for group, count in rows:
        runs = [run for name in group.split() for run in read(name).runs()[0]]
        assert len({segment.id for run in runs for segment in run.segments}) == int(count), group

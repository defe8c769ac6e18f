"""`cwbench experiment`: the paper's experiments, files of one's own, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from cwbench.cli import main
from cwbench.experiment.definition import Experiment, names, read
from cwbench.planning.plan import make_plan
from cwbench.store.results import Store
from cwbench.store.runs import load_runs

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
    assert one.protocol == "paper" and one.seeds == (0, 1, 2, 3, 4) and one.description


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
    return make_plan(runs, Store(Path("nowhere")), 100, lambda segment: 0)


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


FILE = """
name = "mine"
seeds = [0, 2]
protocol = "smoke"
sequences = ["push,window-close"]
options.steps-per-task = 400
options.eval_every = 200
options.update-after = 100

[[methods]]
name = "recall"
options.lambda = [1, 10]
"""


def test_a_users_file(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(FILE)
    one = read(str(file))
    assert one.name == "mine" and one.seeds == (0, 2) and one.protocol == "smoke"
    made = setups(one)
    assert list(made) == ["recall (lambda=1.0)", "recall"]  # 10 is the default
    assert [setup.schedule.steps_per_task for setup in made.values()] == [400, 400]
    assert [setup.network.width for setup in made.values()] == [32, 32]  # the protocol's
    by_hand = read(str(file)).changed("paper", "7")
    assert by_hand.seeds == (7,) and by_hand.runs()[0][0].protocol == "paper"
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
        "perfect-memory",
        "perfect-memory (unshared critic)",
        "perfect-memory (lr=0.01)",
        "perfect-memory (lr=0.01, unshared critic)",
    ]


BASE = 'sequences = ["cw3-1"]\nmethods = ["recall"]\n'
RECALL = 'sequences = ["cw3-1"]\n[[methods]]\nname = "recall"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASE + "seeds = = 3", "my.toml: Invalid value (at line 3"),
        (BASE + "sedes = 3", "my.toml: unknown key 'sedes'; did you mean 'seeds'?"),
        (BASE + "seeds = true", "my.toml: seeds: expected seeds"),
        (BASE + 'seeds = "4-2"', "my.toml: seeds: '4-2' names no seed"),
        (BASE + "seeds = -1", "my.toml: seeds: '-1' is not a list of seeds"),
        (BASE + 'protocol = "smok"', "my.toml: protocol: unknown protocol 'smok'; did you mean"),
        (BASE + "protocol = 3", "my.toml: protocol: expected a text, found 3"),
        ('methods = ["recall"]', "my.toml: sequences: expected a list"),
        ('sequences = ["cw3-1"]', "my.toml: methods: expected a list"),
        (BASE.replace("cw3-1", "cw3-11"), "my.toml: sequences: unknown sequence 'cw3-11'"),
        (BASE.replace("cw3-1", "cw4-*"), "my.toml: sequences: no sequence has a name like 'cw4-*'"),
        (BASE.replace("recall", "recal"), "my.toml: methods, number 1: name: unknown method"),
        (RECALL + "coef = 3", "number 1: unknown key 'coef'; Allowed: name, options, unshared"),
        (RECALL + "options.lamda = 3", "options: recall has no option 'lamda'; did you mean 'lam"),
        (RECALL + 'options.lambda = "3"', "options: lambda: '3' is not a number"),
        (RECALL + "options.lambda = [1, -1]", "options: lambda: -1 is too small"),
        (RECALL + "options.lambda = []", "options: lambda: [] is empty or names a value twice"),
        (RECALL + "options.lambda = [1, 1.0]", "options: lambda: [1, 1.0] is empty or names"),
        (RECALL + "options.lambda = nan", "options: lambda: nan is not a finite number"),
        (RECALL + "options.width = 3.5", "options: width: 3.5 is not a whole number"),
        (RECALL + "options.width = true", "options: width: True is not a whole number"),
        (RECALL + "options.popart = 1", "options: popart: 1 is not true or false"),
        (RECALL + 'options.obs = "cw13"', "options: obs: 'cw13' is not one of"),
        (RECALL + "options.critic-head-layers = 5", "--critic-head-layers 5 is larger than"),
        (RECALL + 'unshared = "policy"', "number 1: unshared: --unshared policy: 'policy' is"),
        (RECALL + "unshared = 3", "number 1: unshared: expected a text, found 3"),
        (BASE.replace('"recall"', "3"), "methods, number 1: expected a table, found 3"),
        (RECALL.replace("name = ", "unshared = "), "number 1: name: unknown method ''"),
        (RECALL + "options = 3", "options: expected a table of options, found 3"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_in_one_line(
    text: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(text)
    with pytest.raises(SystemExit) as exit_code:
        main(["experiment", "my.toml"])
    assert exit_code.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert [file.name for file in tmp_path.iterdir()] == ["my.toml"]


def test_protocols_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    file.write_text(FILE)
    with pytest.raises(SystemExit):
        main(["experiment", "cw3", str(file), "--results", str(tmp_path / "results")])
    assert "cw3 has paper, mine has smoke" in capsys.readouterr().err


def test_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    main(["experiment", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == names()
    main(["experiment", "show", "lambda"])
    assert capsys.readouterr().out == (EXPERIMENTS / "lambda.toml").read_text()


@pytest.mark.commands
def test_two_experiments_are_trained_and_recorded_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real tasks: a sweep, and a second file whose only run is one of the first's."""
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    tiny = FILE.replace('name = "mine"', "").replace("400", "120").replace("200", "60")
    first.write_text(tiny.replace("recall", "l2").replace("lambda = [1, 10]", "coef = [1, 1e5]"))
    second.write_text(first.read_text().replace("[1, 1e5]", "1e5").replace("[0, 2]", "0"))
    results = tmp_path / "results"
    args = ["experiment", str(first), str(second), "--results", str(results), "--threads", "1"]
    main([*args, "--no-live"])
    shown = capsys.readouterr().out
    assert "first: 4 runs" in shown and "second: 1 runs" in shown
    assert "5 runs = 8 segments, 0 done, 8 to train in 2 fleets" in shown
    found = load_runs(results)
    assert sorted(found.runs["label"]) == ["l2"] * 2 + ["l2 (coef=1.0)"] * 2
    assert (found.runs["state"] == "done").all() and not found.problems
    records = [json.loads(file.read_text()) for file in results.glob("experiments/*.json")]
    assert {r["name"]: len(r["runs"]) for r in records} == {"first": 4, "second": 1}
    page = (results / "report" / "index.html").read_text()
    assert "L2 (coef=1.0)" in page
    main([*args, "--dry-run"])
    assert "8 segments, 8 done, 0 to train" in capsys.readouterr().out

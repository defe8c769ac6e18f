"""`cwbench experiment`: the paper's experiments, files of one's own, what is refused."""

import json
from pathlib import Path

import pytest
from experiment_file import FILE

from cwbench.cli import main
from cwbench.experiment.definition import names
from cwbench.store.runs import load_runs

EXPERIMENTS = Path(__file__).parents[2] / "cwbench" / "experiment" / "paper"


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
        (RECALL + "coef = 3", "number 1: unknown key 'coef'; allowed: name, options, unshared"),
        (RECALL + "options.lamda = 3", "options: recall has no option 'lamda'; did you mean 'lam"),
        (RECALL + "options = {lambda = 3, lambda_ = 4}", "options: lambda_: given twice"),
        (RECALL + 'options.lambda = "3"', "options: lambda: '3' is not a number"),
        (RECALL + "options.lambda = [1, -1]", "options: lambda: -1 is too small"),
        (RECALL + "options.lambda = []", "options: lambda: the list of values is empty"),
        (RECALL + "options.lambda = [1, 1.0]", "options: lambda: [1, 1.0] names 1.0 twice"),
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
    assert "first: 4 runs" in shown and "second: 1 run" in shown
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
    main([*args, "--dry-run", "--json"])
    assert json.loads(capsys.readouterr().out)["done"] == 8


def test_two_methods_of_one_name_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of them would train the segments of both."""
    code = (Path(__file__).parents[2] / "examples" / "pull.py").read_text()
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text(code.replace("A method", f"The {name} method"))
    methods = [f"{tmp_path / name}.py:Pull" for name in ("one", "other")]
    file = tmp_path / "both.toml"
    file.write_text(f'methods = {methods}\nsequences = ["point3"]\nprotocol = "demo"\n')
    results = tmp_path / "results"
    both = [f"--method={name}" for name in methods]
    for command in (
        ["experiment", str(file)],
        ["run", *both, "--seq", "point3", "--protocol", "demo"],
    ):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--results", str(results)])
        assert ended.value.code == 2
        assert "two methods are called Pull; rename one of the classes" in capsys.readouterr().err
    assert not results.exists()

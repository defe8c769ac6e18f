"""What commands print: groups of options, JSON, completion; typos before torch is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from cwbench.cli import cli, main

ROOT = Path(__file__).parent.parent.parent


def test_help_of_run_has_groups(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--method", "recall", "--help"])
    lines = capsys.readouterr().out.splitlines()
    groups = [line.rstrip(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert groups == ["Options", "How to train", "Where to train", "Method", "SAC", "Networks",
                      "Environment", "Schedule"]  # fmt: skip
    own = lines[lines.index("Method:") : lines.index("SAC:")]
    assert any("--lambda" in line for line in own) and not any("--lr" in line for line in own)
    main(["run", "--help"])
    assert "With --method NAME also the options of method" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "key", "value"),
    [("methods", "method", "finetuning"), ("tasks", "task", "hammer"),
     ("sequences", "sequence", "cw3-1"), ("doctor", "what", "torch")],
)  # fmt: skip
def test_lists_as_json(
    command: str, key: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([command, "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert value in [row[key] for row in rows]


@pytest.mark.parametrize("command", ["methods", "tasks", "sequences", "doctor", "experiment list"])
def test_tables_fit_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(command.split())
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown  # nothing is cut off


def test_experiments_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["experiment", "list", "--json"])
    assert {"cw3", "cw10"} < {row["experiment"] for row in json.loads(capsys.readouterr().out)}


def test_a_plan_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["run", "--method", "finetuning", "--seq", "push,hammer", "--protocol", "smoke"]
    args += ["--seeds", "0-2", "--dry-run", "--json", "--threads", "1"]
    main([*args, "--results", str(tmp_path / "results")])
    plan = json.loads(capsys.readouterr().out)
    assert [len(fleet) for fleet in plan["fleets"]] == [3, 3] and plan["done"] == 0
    assert plan["needs"]["steps"] == 3 * 2 * 600
    assert [run["seed"] for run in plan["runs"]] == [0, 1, 2]
    assert not list(tmp_path.iterdir())


def test_a_plan_of_two_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["run", "--method", "finetuning", "--method", "l2", "--seq", "point3"]
    args += ["--protocol", "demo", "--width", "8", "--threads", "1"]
    args += ["--results", str(tmp_path / "results")]
    main([*args, "--dry-run", "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert [run["method"] for run in plan["runs"]] == ["finetuning", "l2"]
    assert len(plan["fleets"]) == 6
    with pytest.raises(SystemExit) as exit_code:
        main([*args, "--coef", "1"])
    assert exit_code.value.code == 2
    assert "--coef is no option that all methods have" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_plan_for_a_gpu_of_another_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["run", "--method", "finetuning", "--seq", "point3", "--protocol", "demo"]
    args += ["--launcher", "print", "--device", "cuda", "--dry-run"]
    main([*args, "--results", str(tmp_path / "results")])
    assert "3 to train in 3 fleets on cuda" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", shell])
    assert "_CWBENCH_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flag", "typed", "names"),
    [("--method", "perf", {"perfect-memory"}), ("--seq", "cw2", {"cw20"})],
)
def test_names_are_completed(flag: str, typed: str, names: set[str]) -> None:
    found = ShellComplete(cli, {}, "cwbench", "_CWBENCH_COMPLETE")
    items = found.get_completions(["run", flag], typed)
    assert {item.value for item in items} == names


TYPOS = [
    ["run", "--method", "finetunning", "--seq", "cw3-1"],
    ["run", "--method", "l2", "--seq", "cw3-11"],
    ["run", "--method", "l2", "--seq=push,hamer"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--seeds", "x"],
    ["run", "--method", "l2", "--seq", "cw3-1", "--protocol", "papr"],
    ["experiment", "cw4"],
    ["pairwise", "--tasks", "99"],
]
CODE = f"""
import sys
from cwbench.cli import main
for args in {TYPOS!r}:
    try:
        main(args)
    except SystemExit as error:
        print(error.code, "torch" in sys.modules)
"""


def test_typos_are_answered_before_torch_is_imported() -> None:
    made = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert made.stdout.splitlines() == ["2 False"] * len(TYPOS), made.stderr
    assert len(made.stderr.splitlines()) == len(TYPOS)

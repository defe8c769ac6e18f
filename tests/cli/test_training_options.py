"""Plans that commands show and do not train."""

import json
from pathlib import Path

import pytest

from cwbench.cli import main


def test_a_plan_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["run", "--method", "finetuning", "--seq", "push,hammer", "--protocol", "smoke"]
    args += ["--seeds", "0-2", "--dry-run", "--json", "--threads", "1"]
    main([*args, "--results", str(tmp_path / "results")])
    plan = json.loads(capsys.readouterr().out)
    assert [len(fleet) for fleet in plan["fleets"]] == [3, 3] and plan["done"] == 0
    assert plan["needs"]["steps"] == 3 * 2 * 600
    assert [run["seed"] for run in plan["runs"]] == [0, 1, 2]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", [["finetuning,l2"], ["finetuning", "l2,finetuning"]])
def test_a_plan_of_two_methods(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["run", *(word for text in given for word in ("--method", text)), "--seq", "point3"]
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

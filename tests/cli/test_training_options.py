"""Plans that commands show and do not train."""

import json
from pathlib import Path

import click
import pytest
from other_user import private

from cwbench.cli import main
from cwbench.cli.training_options import TrainingOptions
from cwbench.experiment.execution import Execution, Launching


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
    main([*args, "--dry-run", "--json", "--reset", "critic"])  # which every method has
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert ["reset=critic" in run["label"] for run in runs] == [True, True]
    assert not list(tmp_path.iterdir())


def test_a_plan_for_a_gpu_of_another_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["run", "--method", "finetuning", "--seq", "point3", "--protocol", "demo"]
    args += ["--launcher", "print", "--device", "cuda", "--dry-run"]
    main([*args, "--results", str(tmp_path / "results")])
    assert "3 to train in 3 fleets on cuda" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--quiet"], []])
def test_a_terminal_is_asked_about_days_also_if_quiet(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def confirm(text: str, abort: bool) -> None:
        asked.append(text)
        raise click.Abort

    args = ["run", "--method", "finetuning", "--seq", "reach-0-1", "--protocol", "demo", *more]
    args += ["--threads", "1", "--results", str(tmp_path / "results")]
    monkeypatch.setattr("cwbench.cli.training_options.LONG_SECONDS", 0)
    monkeypatch.setattr("click.confirm", confirm)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 130 and not list(tmp_path.iterdir())
    assert len(asked) == 1 and "continue?" in asked[0]
    main([*args, "--dry-run"])
    assert len(asked) == 1


@pytest.mark.commands
def test_a_record_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its segment is done, so that nothing is trained; reports lack it."""
    run = "run --method finetuning --seq point3 --protocol demo --steps-per-task 60 --eval-every 60"
    run += " --start-steps 20 --update-after 20 --width 8 --threads 1 --workers 1 --no-live"
    results = tmp_path / "my results"
    command = [*run.split(), "--results", str(results)]
    main(command)
    main(command)
    assert "nothing to train" in capsys.readouterr().out
    record = min(results.glob("segments/*/segment.json"))
    with private(record), pytest.raises(SystemExit) as ended:
        main(command)
    said = capsys.readouterr()
    assert ended.value.code == 1 and f"{record.parent.name}/segment.json: not readable" in said.err
    assert "repair" not in said.out and "damaged" not in said.out  # which would not help
    record.write_bytes(b"\xff")
    main([*command, "--dry-run"])
    line = f"problem: {record.relative_to(results)}: not JSON\n"
    assert capsys.readouterr().err == line
    with pytest.raises(SystemExit) as ended:
        main(command)
    said = capsys.readouterr()
    assert (
        ended.value.code == 1 and said.err == line and f"`cwbench repair '{results}'`" in said.out
    )


def test_no_live_page_is_written_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It trains without one."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "report").symlink_to(tmp_path / "elsewhere")
    command = "run --method finetuning --seq reach-0-1 --protocol smoke --threads 1 --yes".split()
    command += "--steps-per-task 300 --eval-every 300 --width 8 --batch-size 8".split()
    main([*command, "--results", str(tmp_path / "results")])
    said = capsys.readouterr()
    assert "no live page: " in said.err + said.out and "report leads out of" in said.err + said.out
    assert not any((tmp_path / "elsewhere").iterdir())
    assert len(list(tmp_path.glob("results/segments/*/end.safetensors"))) == 1


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_has_nothing_to_continue(dry_run: bool) -> None:
    how = {"quiet": False, "live": False, "dry_run": dry_run, "yes": False}
    options = TrainingOptions(Path("results"), Execution(), Launching(), **how)
    assert options.terminal.console.trains is not dry_run

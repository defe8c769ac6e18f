"""What cwbench check says, and its exit code."""

import json
from pathlib import Path

import pytest

from cwbench.cli import main
from cwbench.experiment import conformance
from cwbench.experiment.conformance import CHECKS
from cwbench.spec.errors import UserError


@pytest.mark.slow
def test_the_skeleton_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["new-method", "pull", "--folder", str(tmp_path)])
    main(["check", f"{tmp_path}/pull.py:Pull"])
    shown = capsys.readouterr().out
    assert "FAILED" not in shown and shown.count("\nok ") >= len(CHECKS) - 1
    assert "bytes of state after one task" in shown
    with pytest.raises(UserError, match="unknown method"):
        from cwbench.experiment.conformance import check_method

        check_method("pul")


@pytest.mark.parametrize(("problem", "code"), [("", 0), ("seed 1 differs", 1)])
def test_verdicts_as_json(
    problem: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = conformance.Verdict("alone = in a fleet", problem)
    monkeypatch.setattr(conformance, "run_checks", lambda name: iter([verdict]))
    try:
        main(["check", "finetuning", "--json"])
        ended = 0
    except SystemExit as error:
        ended = int(error.code or 0)
    said = json.loads(capsys.readouterr().out)
    found = {"check": "alone = in a fleet", "problem": problem, "checked": True}
    assert ended == code and said["checks"] == [found]
    assert (said["cost"] is None) == bool(problem)  # nobody asks what a wrong method costs


def test_what_was_not_reached_did_not_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    titles = ("hooks return [R]", "alone = in a fleet", "resumed = uninterrupted")
    problems = ("shape []", "shape []", "")
    found = [
        conformance.Verdict(title, problem, checked=number != 1)
        for number, (title, problem) in enumerate(zip(titles, problems, strict=True))
    ]
    monkeypatch.setattr(conformance, "run_checks", lambda name: iter(found))
    with pytest.raises(SystemExit) as ended:
        main(["check", "finetuning"])
    assert ended.value.code == 1
    assert capsys.readouterr().out.splitlines() == [
        "FAILED       hooks return [R]",
        "             shape []",
        "not checked  alone = in a fleet",
        "ok           resumed = uninterrupted",
    ]

"""Lists of names, as tables and as JSON."""

import json

import pytest

from cwbench.cli import main


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
    runs = {row["experiment"]: row["runs"] for row in json.loads(capsys.readouterr().out)}
    assert {"cw3", "cw10"} < runs.keys() and runs["pairs"] == 2 * 100 * 5  # methods, pairs, seeds

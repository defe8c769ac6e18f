"""`cwbench bench update` compares with Stable-Baselines3."""

import json

import pytest
from click.testing import CliRunner

from cwbench.cli import cli
from cwbench.spec.errors import UserError


def test_bench_update_compares_with_stable_baselines() -> None:
    few = ("--runs", "1,2", "--threads", "1", "--seconds", "0.01", "--rounds", "1")
    made = CliRunner().invoke(cli, ["bench", "update", "--device", "cpu", *few, "--json"])
    assert made.exit_code == 0, made.output
    rows = json.loads(made.output)
    base = rows[0]["ratio_to"]  # the first row where Stable-Baselines3 is not installed
    assert [(row["what"], row["runs"]) for row in rows[:2]] == [("cwbench", 1), ("cwbench", 2)]
    assert [row["ratio"] for row in rows if (row["what"], row["runs"]) == (base, 1)] == [1.0]
    speed = {(row["what"], row["runs"]): row["updates_per_s"] for row in rows}
    for row in rows:  # one round, so that a ratio of speeds is exact
        expected = row["runs"] * row["updates_per_s"] / speed[base, 1]
        assert row["ratio"] == pytest.approx(expected)


def test_bench_update_compares_methods_in_one_table() -> None:
    few = ("--runs", "1", "--threads", "1", "--seconds", "0.01", "--rounds", "1", "--length", "2")
    named = ("bench", "update", "--device", "cpu", "--method", "finetuning,csp", *few)
    result = CliRunner().invoke(cli, [*named, "--batch-size", "4", "--json"])
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.output)
    assert (first["what"], second["what"]) == ("finetuning", "csp")
    assert first["ratio"] == 1.0 and second["ratio_to"] == "finetuning"
    assert second["ratio"] == pytest.approx(second["updates_per_s"] / first["updates_per_s"])


def test_an_unknown_method_is_named() -> None:
    result = CliRunner().invoke(cli, ["bench", "update", "--method", "finetuning,cps"])
    assert isinstance(result.exception, UserError)
    assert "'cps'" in str(result.exception) and "'csp'" in str(result.exception)

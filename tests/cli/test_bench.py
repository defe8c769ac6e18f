"""`cwbench bench` as a command."""

import json

import click
import pytest
from commands import cwbench

from cwbench.cli import main
from cwbench.cli.bench import _show_updates, bench_fleet, bench_update


def test_bench_envs_prints_ratios() -> None:
    made = cwbench("bench", "envs", "--tasks", "push,hammer", "--seconds", "0.05", "--json")
    table = json.loads(made.stdout)
    assert set(table) == {"push", "hammer", "mean_ratio"}
    for name in ("push", "hammer"):
        row = table[name]
        assert row["ratio"] == pytest.approx(row["ours"] / row["stock"])
    mean = (table["push"]["ratio"] + table["hammer"]["ratio"]) / 2
    assert table["mean_ratio"] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("command", "text", "value"),
    [
        (bench_fleet, "--eval-every=20000", 20_000),  # the paper's
        (bench_fleet, "--eval-every=1e6", 10**6),
        (bench_fleet, "--eval-episodes=10000", 10_000),
        (bench_fleet, "--eval-episodes=10001", None),
        (bench_fleet, "--workers=1025", None),
        (bench_fleet, "--lag=2", None),
        (bench_update, "--batch-size=20000", 20_000),
        (bench_update, "--device=tpu", None),
    ],
)
def test_options_have_the_bounds_of_run(
    command: click.Command, text: str, value: int | None
) -> None:
    if value is None:
        with pytest.raises(click.BadParameter):
            command.make_context("bench", [text])
    else:
        found = command.make_context("bench", [text]).params
        assert found[text.partition("=")[0].strip("-").replace("-", "_")] == value


@pytest.mark.usefixtures("without_compilers")
@pytest.mark.parametrize("what", ["update", "fleet"])
def test_plain_updates_are_not_measured_as_compiled(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", what, "--device", "cpu", "--compile", "--runs", "1"])
    said = capsys.readouterr()
    missing = "no C++ compiler; install one, e.g. the package g++"
    assert (ended.value.code, said.out) == (2, "")
    assert said.err == f"cwbench: --compile: {missing}\n"


def test_bench_update_says_how_to_get_what_it_compares_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"what": "cwbench", "runs": 1, "threads": 1, "updates_per_s": 2.0, "ratio": 1.0}
    _show_updates([row | {"ratio_to": "cwbench"}], as_json=False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert "stable-baselines3 is not installed (pip install 'cwbench[bench]')" in last

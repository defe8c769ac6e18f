"""`cwbench bench` as a command."""

import json

import pytest
from commands import cwbench


def test_bench_envs_prints_ratios() -> None:
    made = cwbench("bench", "envs", "--tasks", "push,hammer", "--seconds", "0.05", "--json")
    table = json.loads(made.stdout)
    assert set(table) == {"push", "hammer", "mean_ratio"}
    for name in ("push", "hammer"):
        row = table[name]
        assert row["ratio"] == pytest.approx(row["ours"] / row["stock"])
    mean = (table["push"]["ratio"] + table["hammer"]["ratio"]) / 2
    assert table["mean_ratio"] == pytest.approx(mean)

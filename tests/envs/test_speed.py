"""Speeds of environments."""

import pytest


def test_bench_divides_speeds():
    from cwbench.envs.speed import bench

    table = bench(["push"], seconds=0.3)
    push = table["push"]
    assert push["ratio"] == pytest.approx(push["ours"] / push["stock"])
    assert table["mean_ratio"] == push["ratio"]

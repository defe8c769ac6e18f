"""`cwbench bench` as a command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def cwbench(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cwbench", *args]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd)


def test_bench_envs_prints_ratios() -> None:
    made = cwbench("bench", "envs", "--tasks", "push,hammer", "--seconds", "0.05", "--json")
    table = json.loads(made.stdout)
    assert set(table) == {"push", "hammer", "mean_ratio"}
    for name in ("push", "hammer"):
        row = table[name]
        assert row["ratio"] == pytest.approx(row["ours"] / row["stock"])
    mean = (table["push"]["ratio"] + table["hammer"]["ratio"]) / 2
    assert table["mean_ratio"] == pytest.approx(mean)

"""Diagnostics as files of segments, and through an interruption."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cwbench.experiment.execution import Execution
from cwbench.store.runs import load_runs

TASKS = ("reach-0-1", "reach-2-1000")


def test_they_are_on_for_long_tasks_only() -> None:
    import torch

    cpu = torch.device("cpu")
    assert not Execution().settled(cpu, 600).diagnostics  # as in smoke
    assert Execution().settled(cpu, 2000).diagnostics
    assert not replace(Execution(), diagnostics=False).settled(cpu, 2000).diagnostics


def test_they_are_the_same_after_an_interruption_and_change_no_weight(
    toy_run: Any, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"seeds": (0, 1), "tasks": TASKS}
    plain, plan, _ = toy_run(tmp_path / "plain", **options)
    whole, _, _ = toy_run(tmp_path / "whole", **options, diagnostics=True)
    toy_run(tmp_path / "parts", **options, diagnostics=True, stop_after=13, snapshot_seconds=0)
    parts, _, _ = toy_run(tmp_path / "parts", **options, diagnostics=True)
    for segment in plan.segments:
        one, other = (store.folder(segment).path for store in (whole, parts))
        for name in ("diagnostics.csv", "probe.safetensors", "end.safetensors"):
            assert (one / name).read_bytes() == (other / name).read_bytes()
        assert (one / "end.safetensors").read_bytes() == plain.folder(segment).end.read_bytes()
        assert not (plain.folder(segment).path / "diagnostics.csv").exists()
    table = load_runs(whole.root).diagnostics
    kl = table[table.quantity == "kl"]
    assert set(kl.position) == {1} and set(kl.part) == {"0"} and (kl.value > 0).all()
    assert table.groupby(["run", "position", "segment_step"]).size().gt(10).all()
    assert not load_runs(whole.root).problems

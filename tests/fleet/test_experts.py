"""Segments whose task an expert learned before: their tables, and interruptions."""

from pathlib import Path
from typing import Any

from cwbench.store.runs import load_runs

TASKS = ("reach-0-1", "reach-2-1000")


def test_a_runs_curve_is_the_experts_until_the_student_takes_over(
    toy_run: Any, tmp_path: Path
) -> None:
    store, plan, _ = toy_run(tmp_path, "reset-distill", tasks=TASKS)
    evals = load_runs(store.root).evals
    segments = {(s.setup.method, s.position, s.tasks[-1]): s.id for s in plan.segments}
    second = evals[evals["segment"] == segments["reset-distill", 1, TASKS[1]]]
    expert = evals[evals["segment"] == segments["finetuning", 0, TASKS[1]]]
    first = evals[evals["segment"] == segments["reset-distill", 0, TASKS[0]]]
    columns = ["segment_step", "successes", "mean_return"]
    own = second[(second["eval_position"] == 1) & (second["segment_step"] < 60)]
    assert own[columns].values.tolist() == expert[columns].values.tolist()[:-1]
    old = second[(second["eval_position"] == 0) & (second["segment_step"] < 60)]
    assert set(old["mean_return"]) == {first["mean_return"].iloc[-1]}
    assert list(second["segment_step"]) == [25, 25, 50, 50, 60, 60]


def test_interrupted_while_an_expert_acts(toy_run: Any, tmp_path: Path) -> None:
    whole, plan, _ = toy_run(tmp_path / "whole", "reset-distill", tasks=TASKS[:1])
    toy_run(tmp_path / "parts", "finetuning", tasks=TASKS[:1])
    stop = {"stop_after": 2, "snapshot_seconds": 0.0}
    _, _, outcome = toy_run(tmp_path / "parts", "reset-distill", tasks=TASKS[:1], **stop)
    assert outcome.interrupted
    parts, _, outcome = toy_run(tmp_path / "parts", "reset-distill", tasks=TASKS[:1])
    assert outcome.trained == 1
    student = next(s for s in plan.segments if s.experts)
    files = [store.folder(student).path / "evals.csv" for store in (whole, parts)]
    assert files[0].read_text() == files[1].read_text()

"""`cwbench.load_runs`: runs as a list, and tidy tables."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sample_results import add_counts, small, write_results

import cwbench
from cwbench.experiment.runs import Runs
from cwbench.sharing.track import rows_by_run
from cwbench.spec.config import MetaWorldConfig
from cwbench.store.runs import load_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, toy_run: Any) -> Path:
    """Two seeds of fine-tuning and one of multi-task learning."""
    root = tmp_path_factory.mktemp("runs")
    toy_run(root, "finetuning", seeds=(0, 1))
    toy_run(root, "multitask")
    return root


def test_evaluations_have_a_row_per_run_evaluation_and_task_with_all_keys(folder: Path) -> None:
    runs = cwbench.load_runs(folder)
    table = runs.filter(method="finetuning").evaluations
    # Per run 3 evaluations (steps 25, 50, 60 of each task) of 1 + 2 + 3 tasks.
    assert len(table) == 2 * 3 * (1 + 2 + 3)
    assert table.columns[:11].tolist() == [
        *("run", "sequence", "method", "label", "setup", "protocol", "seed"),
        *("step", "training_position", "training_task", "position"),
    ]
    keys = ["run", "step", "position"]
    assert not table.duplicated(keys).any()
    last = table[(table["seed"] == 1) & (table["step"] == 180) & (table["task"] == "reach-0-1")]
    [row] = last.to_dict("records")
    assert (row["training_position"], row["training_task"]) == (2, "reach-4-1")
    assert (row["position"], row["segment_step"], row["episodes"]) == (0, 60, 2)
    assert row["success_rate"] == row["successes"] / 2


def test_success_rates_count_as_each_runs_own_protocol_does(tmp_path: Path) -> None:
    settings = [small("ewc", env=MetaWorldConfig(success=count)) for count in ("any", "last")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    add_counts(tmp_path)
    runs = cwbench.load_runs(tmp_path)
    for run, column in zip(runs, ("successes", "v3_last"), strict=True):
        table = runs.filter(run=run.run).evaluations
        assert (table["success_rate"] == table[column] / table["episodes"]).all()
        assert (table["v3_last"] < table["successes"]).any()
    sent = rows_by_run(runs)
    for one in runs.evaluations.to_dict("records"):
        assert sent[one["run"]][one["step"]][f"success/{one['task']}"] == one["success_rate"]


def test_tables_hold_the_numbers_on_disk(folder: Path) -> None:
    runs, stored = cwbench.load_runs(folder), load_runs(folder)
    for table, original in ((runs.evaluations, stored.evals), (runs.training, stored.train)):
        assert len(table) == len(original)
        assert sorted(table["mean_return"].dropna()) == sorted(original["mean_return"].dropna())


def test_training_names_the_task_or_all(folder: Path) -> None:
    training = cwbench.load_runs(folder).training
    tasks = training.groupby("method")["task"].unique()
    assert tasks["finetuning"].tolist() == ["reach-0-1", "reach-2-1000", "reach-4-1"]
    assert tasks["multitask"].tolist() == ["all"]


def test_metrics_have_a_row_per_run_that_has_ended(folder: Path) -> None:
    runs = cwbench.load_runs(folder)
    metrics = runs.metrics.set_index(["method", "seed"])
    assert len(metrics) == 3
    # With three evaluations a task, an end value is the last evaluation.
    last = runs.evaluations.query("step == 180").groupby(["method", "seed"])["success_rate"].mean()
    assert metrics["average_performance"].to_dict() == pytest.approx(last.to_dict())
    assert metrics["forgetting"].isna().to_dict() == {
        ("finetuning", 0): False,
        ("finetuning", 1): False,
        ("multitask", 0): True,
    }


def test_diagnostics_are_a_table(folder: Path, tmp_path: Path) -> None:
    """Those of one segment, made up; the other runs have none."""
    assert cwbench.load_runs(folder).diagnostics.empty
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    run = cwbench.load_runs(copy).filter(method="finetuning", seed=1)[0]
    file = run.segment_folder(1) / "diagnostics.csv"
    file.write_text("step,quantity,part,value\n25,dormant,actor.0,0.5\n60,kl,0,2.0\n")
    first, last = cwbench.load_runs(copy).diagnostics.to_dict("records")
    assert (first["run"], first["seed"], first["step"]) == (run.run, 1, 85)
    assert (first["position"], first["task"], first["segment_step"]) == (1, "reach-2-1000", 25)
    assert [first[key] for key in ("quantity", "part", "value")] == ["dormant", "actor.0", 0.5]
    assert [last[key] for key in ("step", "quantity", "part", "value")] == [120, "kl", "0", 2.0]


def test_runs_are_a_sequence_that_can_be_filtered(folder: Path) -> None:
    runs = cwbench.load_runs(folder)
    assert len(runs) == 3 and [run.seed for run in runs.filter(method="finetuning")] == [0, 1]
    assert runs.filter(seed=range(1, 9))[0].seed == 1
    assert len(runs.filter(lambda run: run.done == 3)) == 2
    assert [run.method for run in runs[1:]] == [run.method for run in runs][1:]
    assert set(runs[:1].evaluations["run"]) == {runs[0].run}
    assert len(runs.filter(state="failed").evaluations) == 0
    assert "finetuning" in repr(runs) and "done" in repr(runs)


def test_several_values_of_any_kind_stand_for_any_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = cwbench.load_runs(folder)
    both = (run.seed for run in runs if run.method == "finetuning")
    seeds = (both, {0: "a", 1: "b"}.keys(), runs.summary["seed"].unique(), runs.summary["seed"])
    for wanted in (*seeds, torch.arange(2), [0, 1]):
        assert len(runs.filter(seed=wanted)) == 3
    for seed in (1, np.int64(1), np.array(1), torch.tensor(1)):
        assert [run.seed for run in runs.filter(seed=seed)] == [1]
    for name in ("tasks", "segments", "folders"):
        own: Any = getattr(runs[1], name)
        for whole in (own, list(own)):
            assert runs[1] in runs.filter(None, **{name: whole})
    assert len(runs.filter(segments=runs[1].segments)) == 1
    assert len(runs.filter(segments=[run.segments for run in runs[:2]])) == 2
    monkeypatch.chdir(folder.parent)
    here = Path(folder.name)
    assert len(runs.filter(results=here)) == len(runs.filter(results=[str(here)])) == 3
    assert not any(len(runs.filter(None, **{name: 3})) for name in ("tasks", "results"))
    assert len(runs.filter(tasks=runs[1].tasks[:1])) == 0


def test_a_protocol_from_a_file_is_found_by_the_name_in_it(folder: Path) -> None:
    runs = cwbench.load_runs(folder)
    marked = Runs([replace(runs[0], protocol="mylab+1f3a9c"), runs[1]], runs._tables)
    for wanted in ("mylab", "mylab+1f3a9c", ["mylab", "paper"]):
        assert [run.run for run in marked.filter(protocol=wanted)] == [runs[0].run]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: cwbench.load_runs(folder / "nowhere"), "no results folder at"),
        (lambda folder: cwbench.load_runs(folder).filter(sed=3), "runs have no field 'sed'"),
    ],
)
def test_bad_input_is_one_line(call: Any, message: str, folder: Path) -> None:
    with pytest.raises(cwbench.UserError, match=message) as error:
        call(folder)
    assert "\n" not in str(error.value)


def test_an_empty_folder_has_no_runs(tmp_path: Path) -> None:
    runs = cwbench.load_runs(tmp_path)
    assert len(runs) == 0 and runs.evaluations.empty and runs.training.empty
    assert repr(runs) == "no runs"

"""Diagnostics on the grid of evaluations."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sample_results import small, write_results

from cwbench.reports.analysis import plasticity
from cwbench.reports.analysis.arrange import arrange
from cwbench.reports.analysis.study import Group, Study
from cwbench.store.runs import load_runs


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """One finished run of three tasks with ten evaluations each, at 1000, 2000, ..."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    return arrange(load_runs(tmp_path))


def measured(study: Study, *rows: tuple[int, str, str, float]) -> Group:
    """The study's only group with these diagnostics."""
    table = pd.DataFrame(rows, columns=["step", "quantity", "part", "value"])
    plasticity.add(study, table.assign(run=study.groups[0].runs[0].name))
    return study.groups[0]


def test_layers_and_earlier_tasks_are_averaged(study: Study) -> None:
    layers = [(11_000, "dormant", "actor.0", 0.1), (11_000, "dormant", "actor.1", 0.3)]
    group = measured(study, *layers, (21_000, "kl", "0", 1.0), (21_000, "kl", "1", 4.0))
    dormant, kl = group.plasticity["dormant", "actor"], group.plasticity["kl", ""]
    assert dormant[0, 1, 0] == pytest.approx(20)  # per cent
    assert kl[0, 2, 0] == 2.5
    assert (~np.isnan(dormant)).sum() == (~np.isnan(kl)).sum() == 1


def test_what_is_not_finite_leaves_no_number(study: Study) -> None:
    norms = [(1000, "effective_rank", "critic.0", np.nan), (1000, "effective_rank", "critic.1", 5)]
    group = measured(study, *norms, (2000, "effective_rank", "critic.0", 3.0))
    assert_allclose(group.plasticity["effective_rank", "critic"][0, 0, :2], [np.nan, 3])


def test_rows_that_belong_nowhere_are_left_out(study: Study) -> None:
    """Between evaluations, after the last task, and of a quantity that is not known."""
    rows = [(step, "weight_norm", "actor", 1.0) for step in (1000, 1001, 31_000)]
    group = measured(study, *rows, (1000, "of a later version", "actor", 1.0))
    assert list(group.plasticity) == [("weight_norm", "actor")]
    assert np.nansum(group.plasticity["weight_norm", "actor"]) == 1


def test_end_values_are_of_finished_runs(tmp_path: Path) -> None:
    """The last two of ten evaluations of each task: 9 and 10 thousand steps."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    write_results(
        tmp_path,
        sequence_names=["cw3-1"],
        settings=[small("ewc")],
        seeds=[1],
        upto=0.5,
        name="half",
    )
    study = arrange(load_runs(tmp_path))
    [group] = study.groups
    table = pd.DataFrame(
        [
            (run.name, step, "weight_norm", "actor", step / 1000)
            for run in group.runs
            for step in range(1000, 31_000, 1000)
        ],
        columns=["run", "step", "quantity", "part", "value"],
    )
    plasticity.add(study, table)
    ends = plasticity.end_values(study.groups[0], ("weight_norm", "actor"), 2)
    assert_allclose(ends, [[9.5, 19.5, 29.5], [np.nan] * 3])

"""The table of plasticity against diagnostics that were made up."""

from pathlib import Path

import pandas as pd
import pytest
from sample_results import small, write_diagnostics, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables import catalog
from cwbench.reports.tables.formats import mark
from cwbench.reports.tables.model import Block, Cell


@pytest.fixture(scope="module")
def blocks(with_diagnostics: Path) -> dict[str, Block]:
    study = build.read(with_diagnostics)
    scores = Scores(study, study.protocols[0], resamples=200)
    entry = catalog.find(scores, "cw3-plasticity")
    assert entry is not None and not study.problems
    return {block.title: block for block in catalog.make(scores, entry).blocks}


def cells(block: Block, method: str) -> tuple[Cell, ...]:
    return dict(block.rows)[method]


def test_first_and_last_task_and_what_changed(blocks: dict[str, Block]) -> None:
    block = blocks["Dormant units (%), actor"]
    assert block.columns == ("First task", "Last task", "Change")
    first, last, change = cells(block, "Fine-tuning")
    assert [cell.value for cell in (first, last, change)] == pytest.approx([21, 41, 20])
    # Seeds have 20, 21 and 22: t(2 degrees of freedom, 90 %) = 2.920 times 1 / sqrt(3).
    assert first.score and first.score.estimate.ends("t") == pytest.approx(
        (19.314, 22.686), abs=1e-3
    )
    # Seeds are paired: all of them moved by 20.
    assert change.score and change.score.estimate.ends() == pytest.approx((20, 20))


def test_a_change_may_be_negative_and_ends_are_means_over_the_window(tmp_path: Path) -> None:
    """50 % of dormant units in the first task, 30 and 28 % in the last, none at its very end."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    write_diagnostics(
        tmp_path, lambda _, seed, at: {("dormant", "actor"): 0.5 - 0.1 * at - 0.01 * seed * at}
    )
    for file in tmp_path.glob("segments/*/diagnostics.csv"):
        rows = pd.read_csv(file)
        rows.loc[rows["step"] == 10_000, "value"] = 0.0
        rows.to_csv(file, index=False)
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3-plasticity")
    [(_, (first, last, change))] = table.blocks[0].rows
    assert [cell.value for cell in (first, last, change)] == pytest.approx([25, 14.5, -10.5])
    assert change.score and change.score.estimate.t_low < -10.5 < change.score.estimate.t_high < 0


def test_diagnostics_may_have_any_size(blocks: dict[str, Block]) -> None:
    every = [cell for block in blocks.values() for _, row in block.rows for cell in row]
    assert all(cell.any_size for cell in every)


def test_what_a_method_or_a_task_does_not_have_is_empty(blocks: dict[str, Block]) -> None:
    first, last, change = cells(blocks["KL from earlier policies"], "RECALL")
    assert last.value == pytest.approx(1.5)  # of 1 and 2
    assert first.empty and change.empty and "no earlier" in first.why
    cosines = blocks["Cosine of old and new gradients, critic"]
    assert cells(cosines, "RECALL")[1].value == pytest.approx(-0.5)
    assert cells(cosines, "Fine-tuning")[1].why.startswith("not measured")
    assert "EWC" not in dict(cosines.rows)  # trained without diagnostics


def test_there_is_none_without_diagnostics(triplets: Path) -> None:
    assert not [name for name in build.table_names(build.read(triplets)) if "plasticity" in name]


def test_seeds_without_diagnostics_are_missing_on_each_sequence(tmp_path: Path) -> None:
    """All five have ended, and three of them were diagnosed."""
    names, settings = ["cw3-1", "cw3-2"], [small("finetuning")]
    write_results(tmp_path, sequence_names=names, settings=settings, seeds=range(3))
    write_diagnostics(tmp_path, lambda *_: {("weight_norm", "actor"): 1.0})
    write_results(tmp_path, sequence_names=names, settings=settings, seeds=[3, 4], name="plain")
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3-plasticity")
    [(_, row)] = table.blocks[0].rows
    assert [(cell.seeds, cell.asked) for cell in row] == [(3, 5)] * 3
    assert mark(row[0]) == "3/5"

"""Tables on disk that another version of the program wrote."""

from pathlib import Path

import numpy as np
import pytest
from sample_results import Setting, write_results

from cwbench.store.runs import load_runs


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[Setting("finetuning")], seeds=[0]
    )


def rewrite(file: Path, name: str, cell: str | None) -> None:
    """Give a CSV one more column, or take away one where `cell` is None."""
    header, *rows = [line.split(",") for line in file.read_text().splitlines()]
    if cell is None:
        index = header.index(name)
        table = [row[:index] + row[index + 1 :] for row in (header, *rows)]
    else:
        table = [[*header, name], *([*row, cell] for row in rows)]
    file.write_text("".join(",".join(row) + "\n" for row in table))


def test_older_files_lack_a_statistic(results: Path) -> None:
    before = load_runs(results)
    for file in results.glob("segments/*/train.csv"):
        rewrite(file, "entropy", None)
    loaded = load_runs(results)
    assert not loaded.problems and len(loaded.train) == len(before.train) > 0
    assert loaded.train["entropy"].isna().all()
    assert np.array_equal(loaded.train["alpha"], before.train["alpha"])


def test_newer_files_may_have_more_columns(results: Path) -> None:
    before = load_runs(results)
    for file in results.glob("segments/*/*.csv"):
        rewrite(file, "mood", "good")
    loaded = load_runs(results)
    assert not loaded.problems
    assert loaded.train.equals(before.train) and loaded.evals.equals(before.evals)


def test_files_without_their_key_are_problems(results: Path) -> None:
    for file in results.glob("segments/*/train.csv"):
        rewrite(file, "step", None)
    loaded = load_runs(results)
    assert len(loaded.problems) == 3 and "unexpected header" in loaded.problems[0]
    assert not len(loaded.train) and len(loaded.evals)

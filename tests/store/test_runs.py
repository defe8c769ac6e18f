"""Tables on disk, some of another version of the program, and several folders as one study."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import Setting, change_experiment, write_results

from cwbench.store.runs import load_runs, records_of, together


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


def test_a_file_of_many_bad_lines_does_not_fill_the_list_of_problems(results: Path) -> None:
    file = sorted(results.glob("segments/*/evals.csv"))[0]
    header, *lines = file.read_text().splitlines()
    file.write_text("\n".join([header, *(f"x{line}" for line in lines), ""]))
    status = json.loads((file.parent / "status.json").read_text())
    status.pop("checksums", None)
    (file.parent / "status.json").write_text(json.dumps(status))
    problems = [one for one in load_runs(results).problems if "evals.csv" in one]
    assert len(lines) > 6 and len(problems) == 6
    where = f"{file.parent.name}/evals.csv"
    assert problems[-1] == f"{where}: {len(lines) - 5} more lines that cannot be read"


def test_a_lost_row_shifts_no_others(results: Path) -> None:
    """The last one of the first of three tasks: later ones begin where they did."""
    before = load_runs(results).evals
    [file] = results.glob("segments/finetuning-1-*/evals.csv")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    first = before["position"] == 0
    lost = first & (before["segment_step"] == before["segment_step"][first].max())
    assert lost.sum() == 1
    assert load_runs(results).evals.equals(before[~lost].reset_index(drop=True))


def test_a_line_that_was_cut_is_no_row(results: Path) -> None:
    """Without its last digits a number is another one."""
    before = load_runs(results).evals
    [file] = results.glob("segments/finetuning-3-*/evals.csv")
    file.write_text(file.read_text()[:-3])
    loaded = load_runs(results)
    [problem] = loaded.problems
    assert "truncated line" in problem and loaded.evals.equals(before[:-1])


def test_of_repeated_rows_the_first_is_used_where_it_is(results: Path) -> None:
    before = load_runs(results).evals
    [file] = results.glob("segments/finetuning-2-*/evals.csv")
    _, row, *_ = file.read_text().splitlines()
    with file.open("a") as stream:
        stream.write(row.rpartition(",")[0] + ",-5.0\n")
    loaded = load_runs(results)
    [problem] = loaded.problems
    assert "1 repeated row; the first of each is used" in problem and loaded.evals.equals(before)


def test_what_comes_after_a_missing_segment_is_left_out(results: Path) -> None:
    """At which steps of the run it was is not known."""
    before = load_runs(results).evals
    [second] = results.glob("segments/finetuning-2-*")
    shutil.rmtree(second)
    assert load_runs(results).evals.equals(before[before["position"] == 0])


@pytest.mark.parametrize("created", [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.0}])
def test_a_run_is_of_the_experiment_that_asked_first(
    created: dict[str, float], tmp_path: Path
) -> None:
    for name in created:
        write_results(
            tmp_path,
            sequence_names=["cw3-1"],
            settings=[Setting("finetuning")],
            seeds=[0],
            name=name,
        )
    for file in tmp_path.glob("experiments/*.json"):
        change_experiment(file, lambda one: one.update(created=created[one["name"]]))
    assert list(load_runs(tmp_path).runs["experiment"]) == [min(created, key=created.__getitem__)]


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    settings = [Setting("finetuning"), Setting("ewc")]
    results = write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1])
    every = load_runs(results)
    [wanted] = every.runs["run"][(every.runs["method"] == "ewc") & (every.runs["seed"] == 1)]
    for file in results.glob("segments/finetuning-*/segment.json"):
        file.write_text("damaged")
    for file in results.glob("segments/*/train.csv"):
        file.write_text("damaged")
    loaded = load_runs(results, ["evals"], {wanted})
    assert not loaded.problems and list(loaded.runs["run"]) == [wanted]
    mine = every.evals[every.evals["run"] == wanted].reset_index(drop=True)
    assert loaded.evals.equals(mine) and len(mine)
    assert not len(loaded.train) and list(loaded.train) == list(every.train)
    assert set(loaded.segments["id"]) == set(
        every.runs["segments"][every.runs["run"] == wanted].iloc[0]
    )


def test_records_have_none_for_what_is_not_there(results: Path) -> None:
    """pandas has NaN for None next to text, and for a key that only other records have."""
    mine = Setting("Mine", source="0123456789ab")
    write_results(results, sequence_names=["cw3-1"], settings=[mine], seeds=[0], name="mine")
    for file in results.glob("segments/finetuning-*/segment.json"):
        record = json.loads(file.read_text())
        del record["machine"]
        file.write_text(json.dumps(record))
    found = {
        (record["method"], record["source"], str(record["machine"]))
        for record in records_of(load_runs(results).segments)
    }
    assert found == {
        ("finetuning", None, "None"),
        ("Mine", "0123456789ab", "{'gpu': 'made up'}"),
    }


def test_each_run_keeps_the_evaluations_of_its_own_folder(results: Path, tmp_path: Path) -> None:
    """pair-0-0 and pair-0-1 share their first segment, which two machines trained differently."""
    folders = [
        write_results(
            tmp_path / name, sequence_names=[name], settings=[Setting("finetuning")], seeds=[0]
        )
        for name in ("pair-0-0", "pair-0-1")
    ]
    for file in folders[1].glob("segments/finetuning-1-*/evals.csv"):
        rewrite(file, "mean_return", None)
        rewrite(file, "mean_return", "-1.0")
    first, second = map(load_runs, folders)
    assert set(first.segments["id"]) & set(second.segments["id"])
    both = together([first, second, first])
    assert list(both.runs["run"]) == [*first.runs["run"], *second.runs["run"]]
    assert not both.problems  # the first folder twice has nothing to tell
    assert both.segments["id"].is_unique and len(both.segments) == 3
    assert len(both.evals) == len(first.evals) + len(second.evals)
    own = both.evals[both.evals["segment"].isin(first.segments["id"])]
    returns = own.groupby("run")["mean_return"].min()
    assert returns[second.runs["run"][0]] == -1.0 < returns[first.runs["run"][0]]


def test_a_run_has_the_protocols_of_all_its_folders(results: Path) -> None:
    first, second = load_runs(results), load_runs(results)
    asked = pd.Series([{"mine": "ewc"}])
    second.runs = second.runs.assign(protocol="mine", protocols=asked)
    both = together([first, second])
    [found] = both.runs["protocols"]
    assert list(found.items()) == [("paper", first.runs["label"][0]), ("mine", "ewc")]
    assert both.evals.equals(first.evals)


def test_a_run_that_was_trained_twice_is_told(results: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_results(
            tmp_path / name, sequence_names=["cw3-1"], settings=[Setting("finetuning")], seeds=[0]
        )
    [file] = tmp_path.glob("other/segments/finetuning-1-*/evals.csv")
    rewrite(file, "mean_return", None)
    rewrite(file, "mean_return", "-1.0")
    both = together([load_runs(tmp_path / name) for name in ("one", "other")])
    [problem] = both.problems
    assert problem.startswith("1 run is in several folders, with different evaluations")
    assert both.evals.equals(load_runs(tmp_path / "one").evals)


def test_an_empty_folder_adds_nothing(results: Path, tmp_path: Path) -> None:
    alone = load_runs(results)
    both = together([load_runs(tmp_path / "none"), alone])
    assert both.evals.equals(alone.evals) and both.segments.equals(alone.segments)
    assert list(both.evals.dtypes) == list(alone.evals.dtypes)

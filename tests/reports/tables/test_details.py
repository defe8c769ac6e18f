"""Tables of details against numbers taken another way."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import SMALL, small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.page.tables import table_cell
from cwbench.reports.tables import catalog, details
from cwbench.reports.tables.formats import mark
from cwbench.spec.config import MetaWorldConfig
from cwbench.store.runs import load_runs


def test_performance_in_own_windows_is_read_from_training_episodes(tmp_path: Path):
    """CompoNet's and CKA-RL's measure, for every protocol."""
    last = small("finetuning", env=MetaWorldConfig(success="last"))
    root = write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[last, small("finetuning")], seeds=range(2)
    )
    for file in root.glob("segments/*/evals.csv"):  # half of the episodes end solved
        evals = pd.read_csv(file)
        evals.assign(v3_last=evals["successes"] // 2).to_csv(file, index=False)
    study = build.read(root)
    assert len(study.groups) == len(study.protocols) == 2  # never in one table
    for group in study.groups:
        scores = Scores(study, group.protocol)
        entry = catalog.find(scores, "cw3-own-window")
        assert entry is not None
        [(_, (own, end, lost))] = entry.blocks()[0].rows
        per_seed = []
        for run in group.runs:
            for folder in run.folders[1:]:  # the first task is left out
                text = (root / "segments" / folder / "train.csv").read_text()
                *_, row = csv.DictReader(text.splitlines())
                per_seed.append(float(row["successes"]) / float(row["episodes"]))
        assert own.value == pytest.approx(np.mean(per_seed))
        assert end.value < 0.5 and lost.value > 0  # which own windows cannot show
        title = catalog.make(scores, entry).footer["environment"]
        assert (group.protocol.env.get("success") == "last") == ("last step (v3-last)" in title)


def test_never_is_longer_than_any_time(tmp_path: Path):
    setting = small("finetuning")
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[setting], seeds=range(2))
    for position, successes in (1, 10), (2, 0):
        for file in tmp_path.glob(f"segments/*-{position}-*/evals.csv"):
            pd.read_csv(file).assign(successes=successes).to_csv(file, index=False)
    study = build.read(tmp_path)
    block = details.learning(Scores(study, study.protocols[0]), "cw3")[0]
    found = {cell.text.split()[0]: cell.amount for _, [cell] in block.rows}
    assert found["1k"] == 1000 and found["never"] == np.inf


def test_two_evaluations_are_too_few_for_a_time(tmp_path: Path):
    two = small("finetuning", schedule=SMALL | {"eval_every": 5_000})
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[two], seeds=[0])
    study = build.read(tmp_path)
    block = details.learning(Scores(study, study.protocols[0]), "cw3")[0]
    whys = {cell.why for _, [cell] in block.rows if cell.empty}
    assert whys == {"fewer than three evaluations a task"} and len(block.rows) == 3


def rewritten(root: Path, rates: dict[int, int]) -> Scores:
    """Successes of every evaluation by its step within the task; ten where none is given."""
    for file in root.glob("segments/*/evals.csv"):
        evals = pd.read_csv(file)
        evals.assign(successes=evals["step"].map(rates).fillna(10).astype(int)).to_csv(
            file, index=False
        )
    study = build.read(root)
    return Scores(study, study.protocols[0], resamples=50)


def test_what_was_learned_is_counted_over_runs_that_have_ended_and_their_last_window(
    tmp_path: Path,
):
    """All evaluations are solved but the last two, none and 8 of 10: a mean of 0.4."""
    ewc = [small("ewc")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=ewc, seeds=[0, 1])
    write_results(tmp_path, sequence_names=["cw3-1"], settings=ewc, seeds=[2], name="b", upto=0.5)
    scores = rewritten(tmp_path, {9_000: 0, 10_000: 8})
    steps, failed = details.learning(scores, "cw3")
    assert steps.title == "Steps to 0.8"
    assert {cell.text for _, [cell] in steps.rows} == {"1k (2/2)"}
    assert failed.title == "Failed to learn (end value below 0.5)"
    assert {cell.text for _, [cell] in failed.rows} == {"2 of 2"}
    # Old tasks were at 0.4 before the switch: means of 0.67 and 0.6 after it are no drop.
    [(_, (*_, recovered))] = details.stability_gap(scores, "cw3")[0].rows
    assert recovered.text == "no drop"


def test_a_drop_that_ends_with_the_task_took_the_whole_task(tmp_path: Path):
    """Evaluated at 3, 6, 9 and 10 thousand steps. Means of three are 0.67, a drop, and 1."""
    setting = small("ewc", schedule=SMALL | {"eval_every": 3_000})
    write_results(tmp_path, sequence_names=["push,hammer"], settings=[setting], seeds=[0, 1])
    scores = rewritten(tmp_path, {3_000: 0})
    [(_, (*_, recovered))] = details.stability_gap(scores, "other")[0].rows
    assert recovered.text == "2 of 2, 10k steps"


def test_a_method_that_has_not_ended_has_no_drops_to_count(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("finetuning")], seeds=[0, 1])
    write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], name="b", upto=0.5
    )
    study = build.read(tmp_path)
    [(_, _, table)] = build.tables_of(study, "cw3-stability")
    rows = dict(table.blocks[0].rows)
    assert rows["Fine-tuning"][-1].text == "0 of 4"  # two seeds, two switches, all forgotten
    assert rows["EWC"][-1].empty and rows["EWC"][-1].why == "no finished run"


def test_settings_without_the_default_have_a_block_of_their_own(tmp_path: Path):
    """The default ran on CW3-1 only: what other settings did on CW3-2 is in no other table."""
    default, *others = (small("ewc", coef=coef) for coef in (10.0, 1.0, 2.0))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[default, *others], seeds=[0, 1])
    write_results(tmp_path, sequence_names=["cw3-2"], settings=others, seeds=[0, 1], name="b")
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3-settings")
    shown = {block.title: [title for title, _ in block.rows] for block in table.blocks}
    assert [len(rows) for rows in shown.values()] == [3, 2]
    assert list(shown) == ["EWC on CW3-1", "EWC on CW3-2"]


def test_a_mean_says_that_seeds_are_missing_on_one_of_its_sequences(tmp_path: Path):
    ewc = small("ewc")
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[ewc], seeds=range(3))
    write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[ewc], seeds=[3, 4], name="b", upto=0.5
    )
    write_results(tmp_path, sequence_names=["cw3-2"], settings=[ewc], seeds=range(3), name="c")
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3")
    cells = {row: cells[0] for row, cells in table.blocks[0].rows}
    shown = {row: (cell.seeds, cell.asked) for row, cell in cells.items()}
    assert shown == {"1": (3, 5), "2": (3, 3), "mean": (3, 5)}


def test_the_fraction_of_a_mean_is_that_of_one_of_its_sequences(tmp_path: Path):
    """4/5, 3/3 and 5/5: one lacks a seed of five. Three seeds were asked for on all, and ended."""
    ewc = small("ewc")
    for name, seeds in (("cw3-1", 4), ("cw3-2", 3), ("cw3-6", 5)):
        write_results(
            tmp_path, sequence_names=[name], settings=[ewc], seeds=range(seeds), name=name
        )
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[ewc], seeds=[4], upto=0.5)
    tables = {name: table for name, _, table in build.tables_of(build.read(tmp_path))}
    for name in ("cw3", "cw3-tasks"):
        rows = dict(tables[name].blocks[0].rows)
        [cell] = rows["mean" if name == "cw3" else "push"]
        assert mark(cell) == "4/5" and "4 of 5 seeds" in table_cell(cell)
    [(_, (mean, *_))] = tables["cw3-aggregates"].blocks[0].rows
    assert (mean.seeds, mean.asked) == (3, 3)


def test_a_sequence_that_is_left_out_of_a_mean_is_not_in_its_fraction(tmp_path: Path):
    """Backward transfer needs two tasks: `push` alone has none."""
    ewc = small("ewc")
    write_results(tmp_path, sequence_names=["push,hammer"], settings=[ewc], seeds=range(5))
    write_results(tmp_path, sequence_names=["push"], settings=[ewc], seeds=range(2), name="b")
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "other-more")
    [cell] = dict(table.blocks[0].rows)["mean (1 of 2)"]
    assert (cell.seeds, cell.asked) == (5, 5)


def test_two_versions_of_a_method_have_different_rows_in_the_table_of_single_tasks(tmp_path: Path):
    """Options that all methods share are not in a label."""
    settings = [small("ewc"), small("ewc", schedule=SMALL | {"batch_size": 64})]
    write_results(tmp_path, sequence_names=["single-push"], settings=settings, seeds=[0])
    study = build.read(tmp_path)
    [protocol] = study.protocols
    [block] = details.single_tasks(Scores(study, protocol))
    assert {name for name, _ in block.rows} == {
        f"push, EWC ({group.setup[:4]})" for group in study.groups
    }
    assert len(study.groups) == 2


def test_a_finished_run_without_its_last_evaluations_is_no_seed_of_a_task(tmp_path: Path):
    """`hammer` is in both sequences; one run of five lost evaluations in the second."""
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2"], settings=[small("ewc")])
    lose_evaluations(tmp_path, "cw3-2", seed=4)
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "cw3-tasks")
    [cell] = dict(table.blocks[0].rows)["hammer"]
    assert len(cell.keys) == 2 and (cell.seeds, cell.asked) == (4, 5)


def test_the_fraction_of_pairs_is_that_of_one_pair(tmp_path: Path):
    """4/5 and 3/3: the score's three seeds were not asked for of five."""
    for name, seeds in (("pair-0-1", 5), ("pair-1-0", 3)):
        write_results(
            tmp_path,
            sequence_names=[name],
            settings=[small("perfect_memory")],
            seeds=range(seeds),
            name=name,
        )
    lose_evaluations(tmp_path, "pair-0-1", seed=4)
    [(_, _, table)] = build.tables_of(build.read(tmp_path), "pairs")
    [(_, (first, second, *_))] = table.blocks[0].rows
    assert {(cell.seeds, cell.asked) for cell in (first, second)} == {(4, 5)}


def lose_evaluations(root: Path, sequence: str, *, seed: int) -> None:
    """The last segment of a run that is done keeps the first half of its evaluations."""
    runs = load_runs(root).runs
    [run] = runs[(runs["sequence"] == sequence) & (runs["seed"] == seed)].to_dict("records")
    file = root / "segments" / run["folders"][-1] / "evals.csv"
    evals = pd.read_csv(file)
    evals[evals["step"] <= evals["step"].max() // 2].to_csv(file, index=False)

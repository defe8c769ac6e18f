"""Bad input is named in the report, never guessed at, dropped or turned into zero."""

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_results import change_experiment, small, write_results

from cwbench.methods._popart import VARIANCE_MAX
from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.tables.headline import stacked
from cwbench.spec.config import MetaWorldConfig
from cwbench.store.results import SegmentFolder

SEQUENCE = "cw3-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two methods, two seeds, one sequence; ten evaluations a task."""
    return write_results(
        tmp_path / "results",
        sequence_names=[SEQUENCE],
        settings=[small("ewc"), small("recall")],
        seeds=range(2),
    )


def segment(folder: Path, start: str) -> Path:
    [found] = folder.glob(f"segments/{start}*")
    return found


def performance(study: Study, column: str) -> float:
    block = stacked(Scores(study, study.protocols[0]), "cw3")[0]
    return block.rows[0][1][block.columns.index(column)].value


def only(problems: list[str], *words: str) -> None:
    """Exactly one problem, and it says these words."""
    assert len(problems) == 1, problems
    for word in words:
        assert word in problems[0]


def test_a_clean_folder_has_no_problem(folder: Path):
    assert build.read(folder).problems == []


def test_an_empty_folder(tmp_path: Path):
    study = build.read(tmp_path)
    only(study.problems, "holds no runs")
    made = build.write_report(study, tmp_path, tmp_path / "report")
    assert "holds no runs" in made.page.read_text()


def test_a_truncated_line(folder: Path):
    file = segment(folder, "ewc-3-hammer-s0") / "evals.csv"
    file.write_bytes(file.read_bytes()[:-6])
    study = build.read(folder)
    assert len(study.problems) == 2
    assert "ewc-3-hammer-s0" in study.problems[0] and "truncated line" in study.problems[0]
    assert "1 evaluation is missing" in study.problems[1]
    whole = build.read(folder).groups[0].complete[1]  # the other seed alone stands in the cell
    assert performance(study, "EWC") == pytest.approx(np.mean(whole[-1, -2:]))
    [(_, _, table)] = build.tables_of(study, "cw3")
    assert "a fraction counts the seeds that have ended with all evaluations." in table.caption


def test_repeated_rows(folder: Path):
    before = performance(build.read(folder), "EWC")
    file = segment(folder, "ewc-3-hammer-s0") / "evals.csv"
    lines = file.read_text().splitlines()
    step, position, task, episodes, _, _ = lines[-1].split(",")
    again = f"{step},{position},{task},{episodes},0,0.0"
    file.write_text("\n".join([*lines, again]) + "\n")
    study = build.read(folder)
    only(study.problems, ": 1 repeated row; the first of each is used")
    assert performance(study, "EWC") == before


def test_losses_exist_only_where_there_were_updates(folder: Path):
    """An evaluation every 10 steps and updates every 50 leave rows without any."""
    file = segment(folder, "ewc-2-window-close-s0") / "train.csv"
    table = pd.read_csv(file)
    table.loc[4, ["actor_loss", "critic_loss", "q"]] = np.nan
    table.loc[:4, "updates"] = [0, 50, 100, 150, 150]
    table.to_csv(file, index=False, na_rep="nan")
    assert build.read(folder).problems == []
    table.loc[4, "updates"] = 200
    table.to_csv(file, index=False, na_rep="nan")
    problems = build.read(folder).problems
    assert len(problems) == 3 and "actor_loss is not a number in 1 row" in problems[0]


def test_nan(folder: Path):
    evals = segment(folder, "ewc-2-window-close-s0") / "evals.csv"
    lines = evals.read_text().splitlines()
    evals.write_text("\n".join([*lines[:-1], lines[-1].rsplit(",", 1)[0] + ",nan"]) + "\n")
    only(build.read(folder).problems, "evals.csv", "mean_return is not a number in 1 row")
    lines[-1] = ",".join([*lines[-1].split(",")[:4], "nan", "0.0"])
    evals.write_text("\n".join(lines) + "\n")
    problems = build.read(folder).problems
    assert problems[0] == (
        f"{evals.parent.name}/evals.csv: nan successes in 10 episodes at step 10000 "
        "cannot be right; not used"
    )


def without_seed(asked: dict[str, Any]) -> None:
    asked["runs"] = [r for r in asked["runs"] if (r["method"], r["seed"]) != ("ewc", 1)]


def test_a_missing_seed(folder: Path):
    [file] = folder.glob("experiments/*.json")
    change_experiment(file, without_seed)
    problems = build.read(folder).problems
    assert problems[0] == "EWC: seed 1 is missing on cw3-1; others have it there"
    assert "3 segments of no experiment" in problems[1]


def test_an_unregistered_method_is_no_problem(tmp_path: Path):
    write_results(tmp_path, sequence_names=[SEQUENCE], settings=[small("my_method")], seeds=[0, 1])
    study = build.read(tmp_path)
    assert not study.problems and study.groups[0].title == "My method"
    assert 0 < performance(study, "My method") < 1


def test_a_failed_run_is_named_with_its_message(folder: Path):
    SegmentFolder(segment(folder, "ewc-2-window-close-s1")).set_status(
        "diverged", message="Q is inf"
    )
    only(build.read(folder).problems, "cw3-1, EWC, seed 1", "diverged (Q is inf)", "in no mean")
    train = segment(folder, "ewc-2-window-close-s1") / "train.csv"
    table = pd.read_csv(train).assign(actor_loss=np.nan)
    table.to_csv(train, index=False, na_rep="nan")
    study = build.read(folder)  # losses that are not finite are what that means
    only(study.problems, "diverged (Q is inf)")
    assert study.notes == study.problems


def test_a_segment_whose_values_ran_away_is_named(folder: Path):
    file = segment(folder, "ewc-3-hammer-s1") / "train.csv"
    train = pd.read_csv(file)
    train["value_std"] = np.linspace(1, VARIANCE_MAX**0.5, len(train))
    train.to_csv(file, index=False)
    only(build.read(folder).problems, "values ran away in 1 segment", "ewc-3-hammer-s1")


@pytest.mark.parametrize("env", [MetaWorldConfig(), MetaWorldConfig(unstable="hold")])
def test_a_simulation_that_blew_up_is_named_unless_it_was_held(tmp_path: Path, env: Any):
    folder = tmp_path / "results"
    chosen = small("ewc", env=env)
    write_results(folder, sequence_names=[SEQUENCE], settings=[chosen], seeds=range(2))
    for name, count in (("ewc-2-window-close-s1", 3), ("ewc-3-hammer-s0", 1)):
        one = SegmentFolder(segment(folder, name))
        status = one.intact_status()
        one.set_status(**status | {"resources": status["resources"] | {"unstable_episodes": count}})
    problems = build.read(folder).problems
    if env.unstable == "hold":
        assert not problems
    else:
        only(
            problems, "unstable in 4 training episodes", "ewc-2-window-close-s1", "--unstable hold"
        )


def test_a_failed_run_enters_no_mean_even_with_all_its_evaluations(folder: Path):
    SegmentFolder(segment(folder, "ewc-3-hammer-s1")).set_status("failed")
    study = build.read(folder)
    first = study.groups[0].success[0]
    assert performance(study, "EWC") == pytest.approx(np.mean(first[-1, -2:]))


@pytest.mark.parametrize(("kind", "episodes"), [("evals", 10), ("train", 5)])
def test_impossible_counts_are_not_used(folder: Path, kind: str, episodes: int):
    """The problem names the file and its own step; the run's is 10,000 more."""
    file = segment(folder, "ewc-2-window-close-s0") / f"{kind}.csv"
    table = pd.read_csv(file)
    table.loc[table.index[table["step"] == 3000][0], "successes"] = 11
    table.to_csv(file, index=False)
    problems = build.read(folder).problems
    assert problems[0] == (
        f"{file.parent.name}/{kind}.csv: 11 successes in {episodes} episodes at step 3000 "
        "cannot be right; not used"
    )
    if kind == "evals":
        assert "1 evaluation is missing" in problems[1]


def test_evaluations_of_another_task(folder: Path):
    file = segment(folder, "ewc-1-push-s0") / "evals.csv"
    file.write_text(file.read_text().replace(",push,", ",hammer,"))
    only(build.read(folder).problems, "position 0 are of 'hammer', not of 'push'")


def test_one_seed_has_values_but_no_intervals(tmp_path: Path):
    write_results(tmp_path, sequence_names=[SEQUENCE], settings=[small("ewc")], seeds=[0])
    study = build.read(tmp_path)
    cell = stacked(Scores(study, study.protocols[0]), "cw3")[0].rows[0][1][0]
    assert 0 < cell.value < 1
    assert cell.score is not None
    assert np.isnan([cell.score.estimate.low, cell.score.estimate.t_low]).all()
    assert cell.why == "one seed: no interval"


def test_unfinished_runs_enter_no_mean(tmp_path: Path):
    write_results(tmp_path, sequence_names=[SEQUENCE], settings=[small("ewc")], seeds=[0], name="a")
    whole = performance(build.read(tmp_path), "EWC")
    write_results(
        tmp_path, sequence_names=[SEQUENCE], settings=[small("ewc")], seeds=[1], name="b", upto=0.5
    )
    study = build.read(tmp_path)
    assert study.problems == []
    assert performance(study, "EWC") == whole
    [cell] = stacked(Scores(study, study.protocols[0]), "cw3")[0].rows[0][1]
    assert cell.score is not None and (cell.score.seeds, cell.asked) == (1, 2)
    assert cell.progress == pytest.approx(0.75)


def test_protocols_are_kept_apart(tmp_path: Path):
    other = small("ewc", env=MetaWorldConfig(reward="v2"))
    write_results(tmp_path, sequence_names=[SEQUENCE], settings=[small("ewc"), other], seeds=[0, 1])
    study = build.read(tmp_path)
    assert len(study.protocols) == 2
    tables = [(name, table) for name, _, table in build.tables_of(study, "cw3")]
    assert len({name for name, _ in tables}) == 2
    for name, table in tables:
        assert name.startswith("cw3-paper-")
        assert len(table.blocks[0].columns) == 1


def test_transfer_without_reference_is_empty_and_says_why(folder: Path):
    study = build.read(folder)
    cells = stacked(Scores(study, study.protocols[0]), "cw3")[2].rows[0][1]
    assert all(np.isnan(cell.value) for cell in cells)
    assert {cell.why for cell in cells} == {
        "no single-task reference for hammer, push, window-close"
    }


@pytest.mark.parametrize("seed", range(30))
def test_no_damaged_file_stops_a_report(folder: Path, tmp_path: Path, seed: int):
    """Cut any file anywhere, or overwrite a piece of it: the report still comes, or says it."""
    rng = random.Random(seed)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = rng.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
    content = bytearray(file.read_bytes())
    place = rng.randrange(len(content))
    if rng.random() < 0.5:
        del content[place:]
    else:
        content[place : place + 5] = b"\xff\x00{,"
    file.write_bytes(content)
    study = build.read(copy)
    for _ in build.tables_of(study):
        pass
    if bytes(content) != (folder / file.relative_to(copy)).read_bytes():
        changed = build.read(folder).groups
        same = len(changed) == len(study.groups) and all(
            np.array_equal(a.success, b.success, equal_nan=True)
            for a, b in zip(changed, study.groups, strict=True)
        )
        assert study.problems or same

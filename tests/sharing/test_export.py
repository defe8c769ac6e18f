"""Exported results say what the results folder says."""

import json
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_results import SMALL, small, write_results

import cwbench
from cwbench import envs
from cwbench.cli.options import own_methods
from cwbench.sharing.export import FORMATS, episodes, export, in_order, in_random_order, transitions
from cwbench.spec.config import MetaWorldConfig, PointMassConfig
from cwbench.spec.errors import UserError
from cwbench.spec.source import short_hash


def test_exported_policies_act_like_those_of_the_folder(
    shared_results: Path, tmp_path: Path
) -> None:
    cards = list(export(shared_results, "weights", tmp_path))
    assert len(cards) == 4
    run = cwbench.load_runs(shared_results)[1]
    [card] = [card for card in cards if f"s{run.seed}" in card.parent.name and "1-" in card.name]
    original, loaded = cwbench.load_policy(run, 0), cwbench.load_policy(card)
    obs = np.random.default_rng(0).normal(size=(5, 12))
    assert (original.act(obs, deterministic=True) == loaded.act(obs, deterministic=True)).all()
    assert (original.task, original.segment) == (loaded.task, loaded.segment)
    one, other = (cwbench.evaluate(policy, episodes=2) for policy in (original, loaded))
    assert (one.returns == other.returns).all()


def test_folders_of_policies_have_names_for_a_shell(shared_results: Path, tmp_path: Path) -> None:
    runs = cwbench.load_runs(shared_results)[:1]
    run = runs._runs[0] = replace(runs[0], label="recall (lambda=5.0)")
    [folder] = {card.parent.name for card in FORMATS["weights"](runs, tmp_path)}
    assert folder == f"recall-lambda-5.0-{run.sequence}-s{run.seed}-{run.segments[-1]}"


def test_the_documented_actor_in_plain_torch_acts_alike(
    shared_results: Path, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sharing.md").read_text()
    [code] = [part for part in page.split("```python\n") if "def load_actor" in part]
    names: dict[str, Any] = {}
    exec(code.split("```")[0], names)
    obs = np.random.default_rng(0).normal(size=(5, 12))
    for card in export(shared_results, "weights", tmp_path):
        actions = cwbench.load_policy(card).act(obs, deterministic=True)
        np.testing.assert_allclose(names["load_actor"](card)(obs), actions, atol=1e-5)


def test_a_file_that_is_no_card_is_refused(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"task": "push"}))
    with pytest.raises(UserError, match="not the card of a policy"):
        cwbench.load_policy(tmp_path / "card.json")
    with pytest.raises(UserError, match="no such file"):
        cwbench.load_policy(tmp_path / "nowhere.json")


def test_rliable_gets_runs_by_tasks(shared_results: Path, tmp_path: Path) -> None:
    [file] = export(shared_results, "rliable", tmp_path)
    scores = np.load(file)["perfect-memory"]
    assert scores.shape == (2, 2)
    runs = cwbench.load_runs(shared_results)
    last = runs.evaluations[runs.evaluations["step"] == 120]
    assert scores.ravel().tolist() == last["success_rate"].tolist()


def test_rliable_gets_the_end_values_of_reports(tmp_path: Path) -> None:
    """As the protocol counts, at the last step, and over the last two of ten evaluations."""
    settings = [small("ewc", env=MetaWorldConfig(success="last"))]
    write_results(tmp_path, sequence_names=["pair-0-1"], settings=settings, seeds=[0])
    [file] = tmp_path.glob("segments/ewc-2-*/evals.csv")
    table = pd.read_csv(file)
    table["successes"] = 10
    table["v3_last"] = 0
    first, second = ((table["eval_position"] == position) for position in (0, 1))
    table.loc[first & (table["step"] == 9_000), "v3_last"] = 2
    table.loc[second & (table["step"] >= 9_000), "v3_last"] = 7
    table.to_csv(file, index=False)
    [exported] = export(tmp_path, "rliable", tmp_path / "out")
    assert np.load(exported)["ewc"].tolist() == [[0.1, 0.7]]


def test_parquet_tables_are_the_tables(shared_results: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    assert len(list(export(shared_results, "parquet", tmp_path))) == 3
    read = pd.read_parquet(tmp_path / "evaluations.parquet")
    pd.testing.assert_frame_equal(
        read, cwbench.load_runs(shared_results).evaluations, check_dtype=False
    )


def test_minari_datasets_hold_the_transitions(
    shared_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folders = list(export(shared_results, "minari", tmp_path))
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        found = list(minari.load_dataset(str(folders[0].relative_to(tmp_path))))
    segment = folders[0].name.removesuffix("-v0")
    rows = np.load(shared_results / "segments" / segment / "replay" / "transitions.npy")
    assert sum(len(episode.rewards) for episode in found) == len(rows) == 60
    assert np.concatenate([episode.actions for episode in found]) == pytest.approx(rows[:, 12:16])
    assert [len(episode.observations) for episode in found] == [21, 21, 21]
    assert all(episode.truncations[-1] for episode in found)


def test_transitions_that_have_changed_are_not_exported(
    shared_results: Path, tmp_path: Path
) -> None:
    [original, *_] = sorted(shared_results.glob("segments/*/replay/transitions.npy"))
    folder = tmp_path / original.parents[1].name
    shutil.copytree(original.parents[1], folder)
    assert (transitions(folder) == np.load(original)).all()
    rows = np.load(original)
    rows[0, 0] += 1
    np.save(folder / "replay" / "transitions.npy", rows)
    with pytest.raises(UserError, match=r"transitions.npy: its checksum differs"):
        transitions(folder)


def test_a_run_without_its_last_evaluation_is_left_out(
    shared_results: Path, tmp_path: Path
) -> None:
    results = shutil.copytree(shared_results, tmp_path / "results")
    table = next(results.glob("segments/perfect-memory-2-*-s1-*/evals.csv"))
    table.write_text(table.read_text().replace(",0,", ",1,"))
    problems: list[str] = []
    [file] = export(results, "rliable", tmp_path, problems=problems)
    whole = [*export(shared_results, "rliable", tmp_path / "whole")]
    assert (np.load(file)["perfect-memory"] == np.load(whole[0])["perfect-memory"][:1]).all()
    damaged, left_out = problems
    assert "evals.csv: its checksum differs" in damaged
    assert left_out.endswith("lacks evaluations at its end and is left out")


def test_policies_and_transitions_need_no_tables(shared_results: Path, tmp_path: Path) -> None:
    results = shutil.copytree(shared_results, tmp_path / "results")
    for table in results.glob("segments/*-s1-*/evals.csv"):
        table.unlink()
    problems: list[str] = []
    cards = list(export(results, "weights", tmp_path / "some", problems=problems))
    assert {card.relative_to(tmp_path / "some") for card in cards} == {
        card.relative_to(tmp_path / "all")
        for card in export(shared_results, "weights", tmp_path / "all")
    }
    assert len([problem for problem in problems if "evals.csv: missing" in problem]) == 2
    for folder in results.glob("segments/*-s1-*"):
        assert len(transitions(folder)) == 60


def test_episodes_end_at_the_horizon_or_where_the_next_row_does_not_follow() -> None:
    obs = np.array([0.0, 1, 2, 3, 0, 1])[:, None]
    rows = {"obs": obs, "next_obs": obs + 1, "terminated": None}
    assert list(episodes(rows, 3)) == [slice(0, 3), slice(3, 4), slice(4, 6)]
    assert not in_random_order(rows, 3)
    shuffled = {"obs": obs[[2, 0, 3]], "next_obs": obs[[2, 0, 3]] + 1, "terminated": None}
    assert in_random_order(shuffled, 3)


def test_episodes_of_one_step_are_in_order() -> None:
    """Rows that do not follow each other, since each is an episode that ended."""
    obs = np.zeros((4, 1))
    rows = {"obs": obs, "next_obs": obs + 1, "terminated": np.ones(4)}
    assert not in_random_order(rows, 3)
    assert not in_random_order(rows | {"terminated": None}, 1)


@pytest.fixture(scope="module")
def with_and_without_budget(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One segment of 60 steps that keeps 30 of them, and one that keeps all."""
    results: Path = tmp_path_factory.mktemp("budget") / "results"
    for options in ({"memory": 30}, {}):
        toy_run(results, "perfect-memory", tasks=("reach-0-1",), options=options)
    return results


def test_transitions_of_a_replay_budget_form_no_episodes(with_and_without_budget: Path) -> None:
    found = with_and_without_budget.glob("segments/*")
    budget, whole = sorted(found, key=lambda one: len(transitions(one)))
    dims = envs.dims(PointMassConfig(horizon=20))
    assert [len(in_order(whole, dims, 20)["obs"]), len(transitions(budget))] == [60, 30]
    with pytest.raises(UserError, match=r"transitions.npy: in random order, as a replay budget"):
        in_order(budget, dims, 20)


def test_minari_datasets_have_whole_episodes(with_and_without_budget: Path, tmp_path: Path) -> None:
    pytest.importorskip("minari")
    problems: list[str] = []
    [written] = export(with_and_without_budget, "minari", tmp_path, problems=problems)
    assert written.is_dir()
    [problem] = problems
    assert problem.endswith("as a replay budget keeps them: they form no episodes")


def test_an_empty_folder_has_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no finished task"):
        list(export(tmp_path, "weights"))
    assert not list(tmp_path.iterdir())


OWN = "from cwbench.learner import Method\n\nclass own(Method):\n    version = 1\n"


def test_runs_without_their_code_are_left_out_and_named(toy_run: Any, tmp_path: Path) -> None:
    """A method that was edited between runs, its kept source, and one that is built in."""
    results, file = tmp_path / "results", tmp_path / "own.py"
    for seed, text in enumerate((OWN, OWN.replace("1", "2"))):
        file.write_text(text)
        toy_run(results, f"{file}:own", seeds=(seed,), tasks=("reach-0-1",))
    with pytest.raises(UserError, match="'own' is not installed"):  # not one can be written
        list(export(results, "weights"))
    assert not (results / "export").exists()
    toy_run(results, "finetuning", tasks=("reach-0-1",))
    old, new, _ = runs = cwbench.load_runs(results)
    kept = results / "sources" / f"{short_hash(OWN.encode())}.py"

    def exported(*files: Path) -> tuple[set[str], list[str]]:
        problems: list[str] = []
        own = own_methods([f"{one}:own" for one in files])
        cards = list(export(results, "weights", tmp_path / "out", methods=own, problems=problems))
        return {card.parent.name.rpartition("-")[2] for card in cards}, problems

    ids = [run.segments[-1] for run in runs]
    written, [problem] = exported()
    assert written == {ids[2]}
    assert problem.startswith(f"left out {old.run}, {new.run}: method 'own' is not installed")
    written, [problem] = exported(file)
    assert written == {ids[1], ids[2]}
    assert problem.startswith(f"left out {old.run}: method 'own' here is not the code")
    assert exported(file, kept) == exported(kept, file) == ({*ids}, [])


def test_rliable_keeps_settings_of_one_label_apart(tmp_path: Path) -> None:
    """The schedule is no part of a label: 10,000 and 5,000 steps a task here."""
    settings = [small("ewc"), small("ewc", schedule=SMALL | {"steps_per_task": 5000})]
    results = write_results(
        tmp_path / "results", sequence_names=["cw3-1"], settings=settings, seeds=[0, 1]
    )
    [file] = export(results, "rliable", tmp_path)
    scores = np.load(file)
    assert [scores[name].shape for name in scores] == [(2, 3), (2, 3)]
    assert all(name.startswith("ewc (") for name in scores)


def test_what_is_refused_leaves_no_folder(shared_results: Path, monkeypatch: Any) -> None:
    def refuse(*_: object) -> Iterator[Path]:
        raise UserError("not installed")
        yield

    monkeypatch.setitem(FORMATS, "parquet", refuse)
    before = sorted(shared_results.iterdir())
    with pytest.raises(UserError):
        list(export(shared_results, "parquet"))
    assert sorted(shared_results.iterdir()) == before


def test_nothing_is_exported_through_a_link(shared_results: Path, tmp_path: Path) -> None:
    results, precious = tmp_path / "results", tmp_path / "precious"
    shutil.copytree(shared_results, results)
    precious.write_text("x")
    (results / "export" / "rliable").mkdir(parents=True)
    [file] = export(results, "rliable")
    file.unlink()
    file.symlink_to(precious)
    with pytest.raises(UserError, match=f"{file.name} leads out of"):
        list(export(results, "rliable"))
    assert precious.read_text() == "x"

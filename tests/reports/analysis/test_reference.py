"""Which single-task runs forward transfer is measured against, and what it comes to."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_results import (
    ABOUT,
    Setting,
    run_entry,
    singles,
    small,
    write_results,
    write_runs,
    write_segment,
    write_set,
)

from cwbench import sequences
from cwbench.experiment.build import load_method, runs_of
from cwbench.methods import METHODS
from cwbench.reports import build
from cwbench.reports.analysis import metrics, reference
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Group, Protocol, Study
from cwbench.reports.tables import catalog
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.segment import Segment, digest
from cwbench.store.results import Store

TASKS = sequences.get("cw3-1").tasks


def read(results: Path) -> Scores:
    study = build.read(results)
    return Scores(study, study.protocols[0])


def sources(scores: Scores, method: str = "ewc") -> dict[str, str]:
    [group] = [g for g in scores.study.of(scores.protocol, "cw3") if g.method == method]
    return {task: found.source for task, found in scores.reference_of(group).curves.items()}


def test_a_stray_run_does_not_replace_a_set_that_has_all_tasks(tmp_path: Path, shipped: Path):
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    one = singles([TASKS[0]])
    write_results(results, sequence_names=one, settings=[small("finetuning")], name="r", seeds=[0])
    scores = read(results)
    assert sources(scores) == dict.fromkeys(TASKS, "the shipped set small")
    assert scores.study.problems == []
    [group] = scores.study.of(scores.protocol, "cw3")
    area = metrics.area(group.success).mean(0)
    got = scores.task_score([(group, 1)], "forward_transfer")
    assert got.value == pytest.approx((area[1] - 0.5) / 0.5)


def test_mixed_origins_and_unequal_numbers_are_problems(tmp_path: Path, shipped: Path):
    write_set(shipped, TASKS[1:])
    reference.shipped_sets.cache_clear()
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    one = singles([TASKS[0]])
    write_results(results, sequence_names=one, settings=[small("finetuning")], name="r", seeds=[0])
    scores = read(results)
    assert sources(scores)[TASKS[0]] == "1 run of this folder"
    counts, origins = scores.study.problems
    assert "reference runs differ in number" in counts and "push 1" in counts
    assert "mixes references of several origins" in origins


def test_a_set_without_the_protocols_count_of_success_cannot_serve(tmp_path: Path, shipped: Path):
    """A protocol that counts the last step is not compared with success at any step."""
    last = small("ewc", env=MetaWorldConfig(success="last"))
    (shipped / "small.json").write_text(json.dumps(last.setup.record()))
    reference.shipped_sets.cache_clear()
    write_results(tmp_path / "results", sequence_names=["cw3-1"], settings=[last], seeds=[0])
    scores = read(tmp_path / "results")
    found = scores.reference_of(scores.study.groups[0])
    assert not found.curves and "success counted as v3-any only" in found.why(TASKS)


def test_of_two_incomplete_sources_the_one_with_more_runs_serves(tmp_path: Path, shipped: Path):
    write_set(shipped, TASKS[:1])
    reference.shipped_sets.cache_clear()
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    write_results(
        results,
        sequence_names=singles(TASKS[:2]),
        settings=[small("finetuning")],
        name="r",
        seeds=[0],
    )
    shown = {TASKS[0]: "the shipped set small", TASKS[1]: "1 run of this folder"}  # three, one
    assert sources(read(results)) == shown


def test_a_run_under_other_settings_is_no_reference(tmp_path: Path, shipped: Path):
    (shipped / "small.csv.gz").unlink()
    (shipped / "small.json").unlink()
    reference.shipped_sets.cache_clear()
    write_results(tmp_path / "results", sequence_names=["cw3-1"], settings=[small("ewc")])
    other = small("finetuning", env=MetaWorldConfig(reward="v2"))
    write_results(
        tmp_path / "results", sequence_names=singles(TASKS), settings=[other], name="r", seeds=[0]
    )
    study = build.read(tmp_path / "results")
    [group] = [group for group in study.groups if group.method == "ewc"]
    assert Scores(study, group.protocol).reference_of(group).curves == {}


def test_a_run_without_an_evaluation_is_no_reference(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    alone = singles(TASKS)
    write_results(
        tmp_path, sequence_names=alone, settings=[small("finetuning")], name="r", seeds=range(3)
    )
    scores = read(tmp_path)
    [group] = [g for g in scores.study.groups if g.sequence == f"single-{TASKS[0]}"]
    folder = group.runs[1].folders[0]
    lines = (tmp_path / "segments" / folder / "evals.csv").read_text().splitlines()
    (tmp_path / "segments" / folder / "evals.csv").write_text("\n".join(lines[:-1]) + "\n")
    found = sources(read(tmp_path))
    assert found == {task: f"{2 if task == TASKS[0] else 3} runs of this folder" for task in TASKS}


def test_as_many_seeds_are_used_as_the_task_with_fewest_has():
    """Areas and end values by hand; seeds that serve the method come first."""
    rates = np.array([[0.0, 0.2], [0.4, 0.6], [0.8, 1.0]])
    curves = {
        "a": reference.Curves(rates, (3, 4, 7), ""),
        "b": reference.Curves(rates[:2] + 0.1, (0, 1), ""),
    }
    found = reference.Reference(curves)
    rows = [(values.tolist(), seeds) for values, seeds in found.rows(["a", "b"])]
    assert rows == [(pytest.approx([0.1, 0.5]), [3, 4]), (pytest.approx([0.2, 0.6]), [0, 1])]
    (values, seeds), _ = found.rows(["a", "b"], last=1, keep=[{7}, set()])
    assert (values.tolist(), seeds) == ([0.2, 1.0], [3, 7])
    assert found.means(["a", "b"]) == pytest.approx([0.3, 0.4])
    assert found.means(["a"], last=1) == pytest.approx([0.6])


def test_rates_of_a_set_are_of_its_own_episodes():
    """Five an evaluation, seven in the last; the second seed lacks that one."""
    rows = pd.DataFrame(
        [("t", 0, 10, 5, 1, 4), ("t", 0, 20, 7, 6, 0), ("t", 1, 10, 5, 1, 4)],
        columns=["task", "seed", "step", "episodes", "successes", "v1_any"],
    )
    protocol = Protocol("p", {}, {"steps_per_task": 20, "eval_every": 10})
    made = reference.ShippedSet("x", {}, rows)
    for success, rates in (("v3-any", [1 / 5, 6 / 7]), ("v1-any", [4 / 5, 0])):
        curves = made.curves(protocol, success)["t"]
        assert curves.seeds == (0,)
        assert curves.success == pytest.approx(np.array([rates]))


def with_independent(results: Path, sequence: str = "cw3-6", **changes: Any) -> Scores:
    settings = [small("ewc"), small("independent", **changes)]
    write_results(results, sequence_names=[sequence], settings=settings, seeds=range(3))
    return read(results)


def test_independent_is_the_reference_of_tasks_without_single_task_runs(tmp_path: Path) -> None:
    """Every position is trained from scratch: stick-pull has two for each seed."""
    scores = with_independent(tmp_path)
    ewc, independent = scores.study.groups
    origin = "3 runs of independent in this folder"
    assert sources(scores) == {"stick-pull": origin, "peg-unplug-side": origin}
    ours, alone = (metrics.area(group.success).mean(0) for group in (ewc, independent))
    stick = (alone[0] + alone[2]) / 2
    base = np.array([stick, alone[1], stick])
    got = scores.score([ewc], "forward_transfer")
    assert got.value == pytest.approx(((ours - base) / (1 - base)).mean())
    assert scores.per_run(ewc, "forward_transfer").mean() == pytest.approx(got.value)
    [entry] = [entry for entry in catalog.entries(scores) if entry.name == "cw3"]
    assert (
        "Reference of transfer on peg-unplug-side, stick-pull: runs of Independent" in entry.caption
    )


def test_independent_has_no_transfer_against_itself(tmp_path: Path) -> None:
    scores = with_independent(tmp_path)
    independent = scores.study.groups[1]
    got = scores.score([independent], "forward_transfer")
    assert np.isnan(got.value) and got.why == "not defined: these runs are the reference"
    assert np.isnan(scores.per_run(independent, "area_gain")).all()


def test_single_task_runs_come_before_independent(tmp_path: Path) -> None:
    """Then no caption names it, and it is measured like any other method."""
    write_results(
        tmp_path,
        sequence_names=singles(TASKS),
        settings=[small("finetuning")],
        name="r",
        seeds=range(2),
    )
    scores = with_independent(tmp_path, "cw3-1")
    assert sources(scores) == dict.fromkeys(TASKS, "2 runs of this folder")
    assert scores.reference_note("cw3") == ""
    groups = scores.study.of(scores.protocol, "cw3")
    assert np.isfinite([scores.score([group], "forward_transfer").value for group in groups]).all()


def test_a_single_task_run_of_one_task_is_noted_next_to_independent(tmp_path: Path) -> None:
    write_one_task(tmp_path)
    scores = with_independent(tmp_path, "cw3-1")
    assert sources(scores)["push"] == "1 run of this folder"
    assert sources(scores)["hammer"] == "3 runs of independent in this folder"
    assert any("mixes references of several origins" in text for text in scores.study.problems)


@pytest.mark.parametrize(
    "changes",
    [{"source": "0123456789ab"}, {"env": MetaWorldConfig(reward="v2")}, {"schedule": {"width": 8}}],
)
def test_independent_of_ones_own_class_or_another_setting_is_no_reference(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    if "schedule" in changes:
        changes = {"schedule": small("ewc").schedule | changes["schedule"]}
    scores = with_independent(tmp_path, **changes)
    [ewc] = [group for group in scores.study.groups if group.method == "ewc"]
    found = reference.find(scores.study, ewc.protocol, ewc)
    assert not found.curves
    reason = "that of independent in this folder has width 8 instead of 256"
    assert (reason in found.why(ewc.tasks)) == ("schedule" in changes)


def write_one_task(results: Path, source: str | None = None) -> None:
    """A run of fine-tuning on a sequence of the first task, under a name of its author's own."""
    setup = replace(small("finetuning").setup, source=source)
    segment = Segment(setup, 0, TASKS[:1])
    sequence, store = sequences.Sequence("my-push", TASKS[:1]), Store(results)
    write_segment(store, segment, sequence.name)
    entry = run_entry(sequence, small("finetuning"), 0, [segment])
    entry["setup"] = digest(setup.record())
    store.add_experiment({"name": "mine", "command": "", "created": 1.7e9, "runs": [entry]})


@pytest.mark.parametrize("source", [None, "0123456789ab"])
def test_a_sequence_of_one_task_is_a_reference_under_any_name(
    source: str | None, tmp_path: Path
) -> None:
    """But not where it was trained by a class of one's own that is called finetuning."""
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    write_one_task(results, source)
    expected = {} if source else {TASKS[0]: "1 run of this folder"}
    assert sources(read(results)) == expected


def test_a_run_of_an_own_class_leaves_the_folders_references_as_they_are(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(2))
    settings = [small("finetuning")]
    write_results(results, sequence_names=singles(TASKS), settings=settings, name="r", seeds=[0])
    before = read(results)
    mine = [small("Mine", source="0123456789ab")]
    write_results(results, sequence_names=["cw3-1"], settings=mine, name="mine", seeds=[0])
    after = read(results)
    assert sources(after) == sources(before) == dict.fromkeys(TASKS, "1 run of this folder")
    [ewc] = [g for g in after.study.groups if g.method == "ewc"]
    old = before.score(before.study.of(before.protocol, "cw3"), "forward_transfer").value
    assert after.score([ewc], "forward_transfer").value == old and np.isfinite(old)


def wide(method: str, width: int) -> Setting:
    return small(method, schedule=small(method).schedule | {"width": width})


def test_a_reference_of_another_width_is_refused_with_the_reason(tmp_path: Path, shipped: Path):
    """Two runs of single-push with width 64 once replaced the shipped set for all tasks."""
    results = tmp_path / "results"
    both = [small("ewc"), wide("ewc", 64)]
    write_results(results, sequence_names=["cw3-1"], settings=both, seeds=range(2))
    before = read(results).score(build.read(results).groups[:1], "forward_transfer").value
    one = singles([TASKS[0]])
    write_results(results, sequence_names=one, settings=[wide("finetuning", 64)], name="r")
    scores = read(results)
    groups = scores.study.of(scores.protocol, "cw3")
    options = {g.setup: reference.setting(scores.study, g)[0]["width"] for g in groups}
    usual, narrow = sorted(groups, key=lambda g: -options[g.setup])
    assert scores.score([usual], "forward_transfer").value == before
    refused = scores.score([narrow], "forward_transfer")
    assert np.isnan(refused.value)
    assert "that of the shipped set small has width 256 instead of 64" in refused.why
    assert not np.isnan(scores.task_score([(narrow, 0)], "forward_transfer").value)


def test_a_methods_own_preset_is_no_difference(
    tmp_path: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch
):
    """Perfect Memory's batch of 512 is the method; EWC's would be another experiment."""
    monkeypatch.delitem(ABOUT, "preset")  # as in older records
    results = tmp_path / "results"
    settings = [
        replace(small(m), schedule=small(m).schedule | {"batch_size": 512})
        for m in ("perfect_memory", "ewc")
    ]
    write_results(results, sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    scores = read(results)
    assert sources(scores, "perfect_memory") == dict.fromkeys(TASKS, "the shipped set small")
    assert sources(scores, "ewc") == {}


@pytest.mark.parametrize("own", [{}, {"critic_head_layers": 2}])
def test_a_preset_that_a_less_deep_network_limits_is_no_difference(
    own: dict[str, int], tmp_path: Path
) -> None:
    """RECALL's three layers in each head are one of CompoNet's two; two of them were asked for."""
    point3 = [sequences.get("point3")]
    for name, given in (("recall", own), ("independent", {})):
        method, entry = load_method(name)
        runs = runs_of(name, method, entry, "componet", given, wanted=point3, seeds=[0])
        write_runs(tmp_path, runs, entry.method.preset)
    study = build.read(tmp_path)
    [recall] = [group for group in study.groups if group.method == "recall"]
    found = reference.find(study, recall.protocol, recall)
    why = f"critic_head_layers 0 instead of {own.get('critic_head_layers')}"
    assert found.missing(recall.tasks) == (sorted(recall.tasks) if own else [])
    assert (why in found.why(recall.tasks)) == bool(own)


def test_presets_of_older_records_are_those_of_the_methods():
    for name, preset in reference.PRESETS.items():
        assert METHODS[name.replace("_", "-")].method.preset == preset


def test_a_set_of_another_environment_is_not_used(tmp_path: Path, shipped: Path):
    results = tmp_path / "results"
    other = small("ewc", env=MetaWorldConfig(reward="v2"))
    write_results(results, sequence_names=["cw3-1"], settings=[other], seeds=[0])
    assert sources(read(results)) == {}


def test_a_set_of_the_package_serves_the_protocol_it_is_named_after():
    reference.shipped_sets.cache_clear()
    sets = {found.name: found for found in reference.shipped_sets()}
    assert list(sets) == ["compact", "paper"]
    for name, found in sets.items():
        record = Segment(Setting("finetuning", protocol=name).setup, 0, ("push",)).record()
        protocol = Protocol(name, record["env"], record["schedule"])
        assert protocol.settings == found.settings
        options = {**record["network"], **record["sac"]}
        assert reference.difference(found.options, options, frozenset()) == ""
        curves = found.curves(protocol)
        assert set(curves) >= {*TASKS, "shelf-place"} and min(map(len, curves.values())) >= 3


def gymnasium_group(*tasks: str, obs_size: int = 3, gravity: float = 9.8) -> Group:
    """A run on tasks that its environment defines; the second has episodes of 300 steps."""
    horizons = {"a": 200, "b": 300}
    definitions = [
        {"name": task, "kwargs": {"g": gravity}, "horizon": horizons[task]} for task in tasks
    ]
    longest = max(horizons[task] for task in tasks)
    env = {"suite": "gymnasium", "tasks": definitions, "horizon": longest, "obs_size": obs_size}
    name, shape = "-".join(tasks), (1, len(tasks), 1, len(tasks))
    return Group(
        sequence=name,
        tasks=tasks,
        method="finetuning",
        label="finetuning",
        setup="",
        protocol=Protocol("paper", env, {"steps_per_task": 10, "eval_every": 10}),
        runs=(),
        success=np.zeros(shape),
        training=np.zeros(shape[:3]),
    )


def test_a_task_that_a_sequence_pads_has_no_reference_and_the_reason_is_named() -> None:
    both = gymnasium_group("a", "b", obs_size=5)
    alone = [gymnasium_group("a"), gymnasium_group("b", gravity=1.6), gymnasium_group("b")]
    found = reference.find(Study([both, *alone[:2]], {}, [], []), both.protocol)
    why = "has observations of size 3, padded to 5 in this sequence"
    assert found.refused == {"a": f"that of this folder {why}"}
    assert why in found.why(both.tasks) and "for a, b with" in found.why(both.tasks)
    found = reference.find(Study([both, *alone], {}, [], []), both.protocol)
    assert {*found.refused} == {"a", "b"}


def test_single_tasks_of_a_gymnasium_sequence_are_matched_by_their_definitions() -> None:
    protocol = gymnasium_group("a", "b").protocol
    assert reference._is_reference(gymnasium_group("a"), protocol)
    assert reference._is_reference(gymnasium_group("b"), protocol)
    assert not reference._is_reference(gymnasium_group("a", gravity=1.6), protocol)
    assert not reference._is_reference(gymnasium_group("a", obs_size=4), protocol)
    assert not reference._is_reference(gymnasium_group("b"), gymnasium_group("a").protocol)

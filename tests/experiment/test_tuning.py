"""Tuning: candidates, the rule, what is written down, and how reports mark it."""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import cwbench
from cwbench import sequences
from cwbench.cli import cli
from cwbench.experiment import tuning as module
from cwbench.experiment.tuning import (
    Setting,
    make_tuning,
    parse_sweep,
    run_areas,
    setting_of,
    summary,
)
from cwbench.learner import Method, MethodConfig, option
from cwbench.planning.plan import Run
from cwbench.reports.build import read as read_report
from cwbench.store import tuning as store

TINY: dict[str, Any] = {
    "steps_per_task": 40, "eval_every": 20, "eval_episodes": 1, "start_steps": 5,
    "update_after": 10, "update_every": 10, "batch_size": 8, "hidden": (8,),
    "importance_samples": 10, "device": "cpu", "workers": 1, "threads": 1,
}  # fmt: skip


def test_every_combination_is_a_candidate_and_differs_within_a_fleet() -> None:
    sweep = parse_sweep(["coef=1,10", "importance-samples=5,7"], "ewc")
    assert sweep == {"coef": [1.0, 10.0], "importance_samples": [5, 7]}
    tuning = make_tuning("ewc", [sequences.get("cw3-1")], sweep, seeds=(0, 1))
    runs, _ = tuning.experiment.runs()
    assert len(runs) == 2 * 2 * 2
    assert {run.label for run in runs[:2]} == {"ewc (coef=1.0, importance-samples=5)"}
    keys = {str(run.segments[0].setup.fleet_key()) for run in runs}
    assert len(keys) == 2  # values of coef share a fleet


def test_an_option_that_all_settings_share_is_part_of_the_choice() -> None:
    """Tried with lr 1e-4, the choice must not be used with 1e-3; how long it was tried is free."""
    shared = {"lr": 1e-4, "steps_per_task": 50_000}
    tuning = make_tuning("ewc", [sequences.get("cw3-1")], {"coef": [1.0, 10.0]}, fixed=shared)
    runs, _ = tuning.experiment.runs()
    assert [run.label for run in runs] == [f"ewc (coef={c}, lr=0.0001)" for c in (1.0, 10.0)]
    settings = [setting_of({"coef": coef}, np.array([0.5])) for coef in (10.0, 1.0)]
    record = tuning.record(settings, runs)
    assert record["options"] == {"coef": 10.0, "lr": 1e-4}
    assert "coef=10.0 (the first of 2 equal settings); all settings have lr=0.0001" in "".join(
        summary(settings, record)
    )
    several = {"lr": [1e-4, 1e-3]}  # a list is tried, too
    both = make_tuning("ewc", [sequences.get("cw3-1")], {"coef": [1.0]}, fixed=several)
    assert both.swept == ("lr",) and len(both.experiment.members) == 2
    alone = make_tuning("ewc", [sequences.get("cw3-1")], {"coef": [1.0]})
    assert alone.swept == ("coef",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("hidden=64,32;128", ["64,32", "128"]),
        ("hidden=64,32", ["64,32"]),
        ("log-std-range=-20,2;-5,2", ["-20,2", "-5,2"]),
        ("reset=none;actor,critic", ["none", "actor,critic"]),
        ("activation=relu,tanh", ["relu", "tanh"]),
    ],
)
def test_values_that_have_commas_are_separated_by_semicolons(text: str, values: list[str]) -> None:
    [found] = parse_sweep([text], "ewc").values()
    assert found == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reset=none,critic", "reset"),
        ("coef", "no values"),
        ("coef=", "no values"),
        ("coef=x", "is not a number"),
        ("coef=1,1", "names 1.0 twice"),
        ("coeff=1,2", "no option 'coeff'"),
    ],
)
def test_a_wrong_sweep_is_refused(text: str, message: str) -> None:
    with pytest.raises(cwbench.UserError, match=message):
        make_tuning("ewc", [sequences.get("cw3-1")], parse_sweep([text], "ewc"))


@pytest.mark.parametrize(
    ("method", "on", "sweep", "message"),
    [
        ("ewc", "point3", {"coef": 1}, "sweep of coef: 1 is not several values; give a list"),
        ("ewc", "point3", {"coef": "12"}, "sweep of coef: '12' is not several values"),
        ("ewc", "point3", ["coef"], "is not a sweep"),
        ("ewc", 3, {"coef": [1, 2]}, "3 is not a sequence"),
        (3, "point3", {"coef": [1, 2]}, "3 is not a method; give a name or a subclass"),
        ("ewc", [], {"coef": [1, 2]}, r"\[\] is not a sequence"),
        ("ewc", "point3", {3: [1, 2]}, "ewc has no option 3"),
        ("ewc", "point3", {"lr": [1, 2], "lr_": [3]}, "option 'lr' is given twice"),
    ],
)
def test_a_wrong_call_of_tune_is_refused(method: Any, on: Any, sweep: Any, message: str) -> None:
    with pytest.raises(cwbench.UserError, match=message):
        cwbench.tune(method, on, sweep)


def test_an_array_of_values_and_a_path_are_fine_for_type_checkers(tmp_path: Path) -> None:
    """What `make lint` checks here, with a protocol that is not there."""
    sweep = {"coef": np.logspace(0, 3, 4)}
    with pytest.raises(cwbench.UserError, match="nowhere"):
        cwbench.tune("ewc", "point3", sweep, seeds=np.arange(3), protocol=tmp_path / "nowhere.toml")


def test_the_first_part_of_a_sequence_is_trained_and_nothing_else() -> None:
    tuning = make_tuning("ewc", [sequences.get("cw10")], {"coef": [1.0]}, first=25)
    [run] = tuning.experiment.runs()[0]
    assert run.tasks == sequences.get("cw10").tasks[:3] and run.sequence == "cw10-first-3"
    whole = make_tuning("ewc", [sequences.get("cw10")], {"coef": [1.0]})
    [other] = whole.experiment.runs()[0]
    assert run.segments == other.segments[:3]
    assert "first 25 %" in tuning.rule


def evaluations(run: Run, rows: dict[int, list[int]], **columns: int) -> pd.DataFrame:
    """Step -> successes of 10 for each task seen."""
    name = f"{run.sequence}/{run.segments[-1].id}"
    return pd.DataFrame(
        [
            {"run": name, "step": step, "eval_position": position, "episodes": 10}
            | {"successes": count, **columns}
            for step, counts in rows.items()
            for position, count in enumerate(counts)
        ]
    )


def test_the_area_counts_unseen_tasks_as_failures() -> None:
    tuning = make_tuning(
        "ewc",
        [sequences.get("point3")],
        {"coef": [1.0]},
        fixed={"eval_every": 1500},
        protocol="demo",
    )
    [run] = tuning.experiment.runs()[0]
    evals = evaluations(run, {1500: [10], 3000: [10, 5], 4500: [2, 4, 6]})
    expected = np.mean([1 / 3, 1.5 / 3, 1.2 / 3])
    assert list(run_areas(evals, [run]).values()) == [pytest.approx(expected)]
    for lost in range(len(evals)):  # a run that lacks one is not judged by the others
        assert not run_areas(evals.drop(lost), [run])


def test_a_protocol_that_counts_the_last_step_is_tuned_by_it() -> None:
    given: dict[str, Any] = {"fixed": {"steps_per_task": 50_000}, "protocol": "componet"}
    tuning = make_tuning("ewc", [sequences.get("pair-5-0")], {"coef": [1.0]}, **given)
    [run] = tuning.experiment.runs()[0]
    evals = evaluations(run, {50_000: [10], 100_000: [10, 10]}, v3_last=4)
    assert list(run_areas(evals, [run]).values()) == [pytest.approx(np.mean([0.2, 0.4]))]
    assert not run_areas(evals.assign(v3_last=math.nan), [run])


def test_the_setting_of_the_best_runs_is_chosen_and_all_that_was_seen_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With k of 10 successes at every evaluation the areas are (k/20 + 2k/20) / 2.

    Both pairs begin with one task, which each setting and seed trains once.
    """
    pairs, sweep = ("pair-5-0", "pair-5-3"), {"coef": [1.0, 10.0, 100.0]}
    given: dict[str, Any] = {"fixed": {"eval_every": 1500}, "protocol": "demo", "seeds": (3, 4)}
    tuning = make_tuning("ewc", [sequences.get(one) for one in pairs], sweep, **given)
    runs, _ = tuning.experiment.runs()
    count = {1.0: 2, 10.0: 8, 100.0: 4}
    frames: list[pd.DataFrame] = []
    for run in runs:
        n = count[run.segments[0].setup.options.record()["coef"]]
        frames.append(evaluations(run, {1500: [n], 3000: [n, n]}))
    evals = pd.concat(frames)
    shown = SimpleNamespace(evals=evals.sample(frac=1, random_state=0))
    monkeypatch.setattr(module, "load_runs", lambda *_: shown)
    tuned = tuning.finish(tmp_path, runs, "command")
    order = [10.0, 100.0, 1.0]
    assert [(one.options["coef"], one.runs) for one in tuned.settings] == [(c, 4) for c in order]
    areas = [0.075 * count[coef] for coef in order]
    assert [one.score for one in tuned.settings] == pytest.approx(areas)
    assert tuned.options == {"coef": 10.0} and tuned.record["on"] == list(pairs)
    assert tuned.record["runs"] == 12 and tuned.record["steps"] == 3 * 2 * (1 + 2) * 1500
    assert tuned.record["seeds"] == [3, 4] and tuned.record["protocol"] == "demo"


def test_what_a_part_of_a_sequence_is_called_and_what_it_is_part_of_are_recorded() -> None:
    """Neither may be a test of the choice."""
    tuning = make_tuning("ewc", [sequences.get("cw10")], {"coef": [1.0]}, first=25)
    runs, _ = tuning.experiment.runs()
    record = tuning.record([setting_of({"coef": 1.0}, np.array([0.5]))], runs)
    assert record["on"] == ["cw10", "cw10-first-3"]


@pytest.mark.parametrize(("percent", "count"), [(14, 7), (14.1, 8), (28, 14), (0.1, 1), (99, 50)])
def test_a_share_of_tasks_is_not_exceeded_by_rounding(percent: float, count: int) -> None:
    """In floating point 14 / 100 * 50 is more than 7."""
    tasks = sequences.get("cw10").tasks * 5
    whole = replace(sequences.get("cw10"), name="long", tasks=tasks)
    tuning = make_tuning("ewc", [whole], {"coef": [1.0]}, first=percent)
    assert [len(one.tasks) for one in tuning.experiment.sequences] == [count]


def test_nothing_is_chosen_from_damaged_tables(tmp_path: Path) -> None:
    """The numbers are those of reports, and none is made up for a table that cannot be read."""
    results = tmp_path / "my results"
    how: dict[str, Any] = {"results": results, "quiet": True, **TINY}
    tuned = cwbench.tune("ewc", "reach-0-1,reach-3-1", {"coef": [1.0, 1e4]}, **how)
    metrics = cwbench.load_runs(results).metrics
    scores = sorted((setting.score for setting in tuned.settings), reverse=True)
    assert scores == pytest.approx(sorted(metrics["anytime_performance"], reverse=True))
    [file, *_] = sorted(results.glob("segments/ewc-1-*/evals.csv"))
    tuned.file.unlink()
    file.write_text(file.read_text().replace("40,0,reach-0-1,1", "40,0,reach-0-1,2"))
    with pytest.raises(
        cwbench.UserError, match=r"lacks evaluations: .*evals.csv.*cwbench repair '\S*/my results'"
    ):
        cwbench.tune("ewc", "reach-0-1,reach-3-1", {"coef": [1.0, 1e4]}, **how)
    assert not tuned.file.exists()


def test_the_interval_ends_at_what_an_area_can_be() -> None:
    """Two areas of 0 and 0.056 have a t interval of 0.028 -+ 6.31 * 0.028, which is cut at 0."""
    low = setting_of({}, np.array([0.0, 0.056]))
    assert low.low == 0 and low.high == pytest.approx(0.028 * (1 + 6.3138), rel=1e-4)
    high = setting_of({}, np.array([1.0, 0.944]))
    assert high.high == 1 and high.low == pytest.approx(1 - 0.028 * (1 + 6.3138), rel=1e-4)


def test_sensitivity_is_a_mean_over_the_other_options() -> None:
    settings = [
        Setting({"a": 1, "b": 1}, 0.9, 0, 0, 1),
        Setting({"a": 1, "b": 2}, 0.5, 0, 0, 1),
        Setting({"a": 2, "b": 1}, 0.3, 0, 0, 1),
        Setting({"a": 2, "b": 2}, 0.1, 0, 0, 1),
    ]
    record = {"rule": "rule", "options": {"a": 1, "b": 1}, "runs": 4, "steps": 100}
    text = "\n".join(summary(settings, record))
    assert "mean anytime performance by a: 1: 0.700, 2: 0.200" in text
    assert "mean anytime performance by b: 1: 0.600, 2: 0.300" in text
    assert "best minus worst setting: 0.800" in text


def test_means_of_the_same_scores_are_equal_in_any_order() -> None:
    """In floating point (.3 + .2 + .1) / 3 and (.1 + .2 + .3) / 3 differ."""
    first, second = np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3])
    assert first.mean() != second.mean()
    assert setting_of({}, first).score == setting_of({}, second).score == 0.2


def test_a_tie_is_called_one() -> None:
    settings = [Setting({"coef": coef}, score, 0, 1, 2) for coef, score in ((1.0, 0.5), (2.0, 0.5))]
    record = {"rule": "r", "options": {"coef": 1.0}, "runs": 4, "steps": 10}
    assert summary(settings, record)[0] == "chosen by r: coef=1.0 (the first of 2 equal settings)"
    better = [Setting({"coef": 3.0}, 0.6, 0, 1, 2), *settings]
    assert "equal" not in summary(better, record)[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"results": ""}, "the results folder's name is empty"),
        ({"launcher": "print"}, "--launcher print: tune has to wait for the results"),
        ({"first": "50"}, "--first '50': not a share of a sequence; give more than 0"),
        ({"first": True}, "--first True: not a share of a sequence"),
        ({"first": 0}, "--first 0: not a share of a sequence"),
        ({"coef": 2.0}, "option 'coef' is given twice; give it once"),
        ({"coef_": 2.0}, "option 'coef' is given twice"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_is_written(
    given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cwbench.UserError, match=message):
        cwbench.tune("ewc", "reach-0-1,reach-3-1", {"coef": [1.0]}, quiet=True, **TINY, **given)
    assert not any(tmp_path.iterdir())


def test_tune_then_run_then_report(tmp_path: Path) -> None:
    """The whole way: a sweep, its file, a run with it elsewhere, and the marks in reports."""
    sweep = {"coef": [1.0, 1e4]}
    tuned = cwbench.tune("ewc", "reach-0-1,reach-3-1", sweep, results=tmp_path, quiet=True, **TINY)
    assert len(tuned.settings) == 2 and tuned.record["runs"] == 2
    assert tuned.options["hidden"] == "8"  # the same for all settings, though given as a list
    assert tuned.settings[0].score >= tuned.settings[1].score
    assert tuned.record["steps"] == 2 * 2 * 40
    study = read_report(tmp_path)
    marked = [group for group in study.groups if group.tuned_on]
    assert [f"coef={tuned.options['coef']}" in group.label for group in marked] == [True]
    assert marked[0].title.endswith("tuned on reach-0-1-reach-3-1")
    assert any("no test of them" in problem for problem in study.problems)

    other = tmp_path / "other"
    how = {k: v for k, v in TINY.items() if k not in tuned.options}
    assert {*tuned.options} == {"coef", "hidden", "batch_size", "importance_samples"}
    flags = [f"--{k.replace('_', '-')}={v}" for k, v in how.items()]
    command = ["run", "--tuned", str(tuned.file), "--seq", "reach-5-1", "--results", str(other)]
    made = CliRunner().invoke(cli, [*command, *flags, "--quiet", "--no-live"])
    assert made.exit_code == 0, made.output
    [group] = read_report(other).groups
    assert group.tuned_on == ("reach-0-1-reach-3-1",) and group.method == "ewc"
    assert not any("no test" in problem for problem in read_report(other).problems)


@dataclass(frozen=True)
class OwnConfig(MethodConfig):
    coef: float = option(1.0, "Not used.", per_run=True)


class Own(Method[OwnConfig]):
    """Fine-tuning with an option."""

    config_class = OwnConfig


def test_a_class_is_tuned_on_a_list_of_tasks_as_it_is_planned(tmp_path: Path) -> None:
    how: dict[str, Any] = {"results": tmp_path, **TINY}
    del how["importance_samples"]
    tasks = ["reach-0-1", "reach-3-1"]
    tuned = cwbench.tune(Own, tasks, {"coef": [1.0, 2.0]}, quiet=True, **how)
    assert tuned.record["method"] == "Own" and tuned.record["on"] == ["reach-0-1-reach-3-1"]
    assert tuned.record["runs"] == 2 and store.read(tuned.file)["options"] == tuned.options
    plan = cwbench.plan(Own, tasks, **{**how, **tuned.options})
    assert not plan.fleets.missing
    marked = [group for group in read_report(tmp_path).groups if group.tuned_on]
    assert [group.label for group in marked] == [plan.runs[0].label]


def test_the_options_of_a_class_are_listed_where_no_command_finds_it() -> None:
    """Neither of the calls: `cwbench run --method Own` is an unknown method."""
    own = "Own has no option 'coeff'; did you mean 'coef'? Its own are coef; `cwbench run --method"
    sweep: dict[str, Any] = {"coeff": [1.0, 2.0]}
    for call in (lambda: cwbench.plan(Own, "point3", coeff=2.0),
                 lambda: cwbench.tune(Own, "point3", sweep)):  # fmt: skip
        with pytest.raises(cwbench.UserError, match=re.escape(f"{own} finetuning --help` lists")):
            call()
    for name in ("ewc", f"{__file__}:Own"):
        with pytest.raises(
            cwbench.UserError, match=re.escape(f"--method {name} --help` lists all")
        ):
            cwbench.plan(name, "point3", coeff=2.0)


@pytest.mark.parametrize(
    ("method", "option", "values"),
    [("er", "old_temperatures", ("frozen", "tuned")), ("l2-init", "heads", ("all", "current"))],
)
def test_a_chosen_value_that_records_leave_out_is_recognised(
    method: str, option: str, values: tuple[str, str], tmp_path: Path
) -> None:
    """Segments do not name `frozen` and `all`: results without the option had these."""
    tuning = make_tuning(method, [sequences.get("cw3-1")], {option: values})
    runs, _ = tuning.experiment.runs()
    segments = [run.segments[0].record() for run in runs]
    for number, chosen in enumerate(values):
        settings = [setting_of({option: one}, np.array([float(one == chosen)])) for one in values]
        settings.sort(key=lambda setting: -setting.score)
        record = store.read(store.write(tmp_path, tuning.record(settings, runs)))
        assert record["options"] == {option: chosen}
        assert [store.matches(record, one) for one in segments] == [number == 0, number == 1]

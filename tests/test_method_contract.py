"""What must hold for every registered method; a new one is covered by registering it."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cwbench.methods import METHODS
from cwbench.spec.config import (
    GROUPS,
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import field_names, field_type, per_run_names, resolve
from cwbench.spec.segment import Segment, Setup
from cwbench.store import checkpoint
from cwbench.store.results import Store

TOY_TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")
SETUP = Setup(
    "x", MethodConfig(), SACConfig(), NetworkConfig(), MetaWorldConfig(), ScheduleConfig()
)


def ends(store: Store, segments: list[Segment]) -> list[dict[str, torch.Tensor]]:
    return [checkpoint.load(store.folder(segment).end)[0] for segment in segments]


def lines(store: Store, segment: Segment, name: str) -> list[str]:
    """A CSV without its last column where that is wall time."""
    text = (store.folder(segment).path / name).read_text().splitlines()
    return [line.rsplit(",", 1)[0] for line in text] if name == "train.csv" else text


def assert_same(one: Store, other: Store, segments: list[Segment]) -> None:
    assert segments
    for segment, a, b in zip(segments, ends(one, segments), ends(other, segments), strict=True):
        assert a.keys() == b.keys()
        different = [name for name in a if not torch.equal(a[name], b[name])]
        assert not different, f"{segment.folder}: {different}"
        for name in ("evals.csv", "train.csv"):
            assert lines(one, segment, name) == lines(other, segment, name)


@pytest.mark.parametrize("name", METHODS)
def test_member_of_a_fleet_equals_the_run_alone(name: str, toy_run: Any, tmp_path: Path) -> None:
    tasks = TOY_TASKS if METHODS[name].base is None else TOY_TASKS[:2]
    fleet, plan, outcome = toy_run(tmp_path / "fleet", name, seeds=(0, 1, 2), tasks=tasks)
    alone, own, _ = toy_run(tmp_path / "alone", name, seeds=(1,), tasks=tasks)
    assert outcome.trained == len(plan.segments) and not outcome.failed
    assert_same(fleet, alone, list(own.segments))


# A named variant is its method with other options: what a method saves is tested once.
OWN = [name for name, entry in METHODS.items() if entry.base is None]
SWEPT = [name for name in OWN if per_run_names(METHODS[name].method.config_class)]


@pytest.mark.parametrize("name", SWEPT)
def test_runs_with_their_own_options_equal_the_runs_alone(
    name: str, toy_run: Any, tmp_path: Path
) -> None:
    """One fleet for a sweep over all per-run options; those that are zero stay zero."""
    config = METHODS[name].method.config_class()
    values = {key: getattr(config, key) for key in per_run_names(type(config))}
    sweep = [{key: factor * value for key, value in values.items()} for factor in (1, 30)]
    tasks = TOY_TASKS[:2]
    fleet, plan, _ = toy_run(tmp_path / "fleet", name, tasks=tasks, sweep=sweep)
    assert len(plan.fleets) == len(plan.segments) / 2  # both values in each
    alone, own, _ = toy_run(tmp_path / "alone", name, tasks=tasks, options=sweep[1])
    assert_same(fleet, alone, list(own.segments))
    first, second = ends(fleet, list(plan.fleets[-1]))
    assert any(not torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("name", SWEPT)
def test_only_numbers_other_than_zero_share_a_fleet(name: str) -> None:
    config = METHODS[name].method.config_class
    for key in per_run_names(config):
        [field] = [field for field in dataclasses.fields(config) if field.name == key]
        assert field_type(config, field) is float
        one, two, zero = (
            dataclasses.replace(SETUP, options=resolve(config, {key: value}))
            for value in (1.0, 2.0, 0.0)
        )
        assert one.fleet_key() == two.fleet_key() != zero.fleet_key()
        assert one.record() != two.record()


@pytest.mark.parametrize("name", OWN)
def test_continued_equals_uninterrupted(name: str, toy_run: Any, tmp_path: Path) -> None:
    tasks = TOY_TASKS[:2]
    whole, plan, _ = toy_run(tmp_path / "whole", name, seeds=(0, 1), tasks=tasks)
    options: dict[str, Any] = {"seeds": (0, 1), "tasks": tasks}
    for chunks in (3, 13):  # in the first task and in the second
        _, _, outcome = toy_run(
            tmp_path / "parts", name, **options, stop_after=chunks, groups=2, snapshot_seconds=0
        )
        assert outcome.interrupted
    parts, _, outcome = toy_run(tmp_path / "parts", name, **options)
    assert not outcome.interrupted
    assert_same(whole, parts, list(plan.segments))


@pytest.mark.parametrize("name", OWN)
def test_a_broken_run_does_not_touch_its_neighbour(name: str, toy_run: Any, tmp_path: Path) -> None:
    if METHODS[name].method.trains_jointly:
        pytest.skip("a joint run has one segment, so no parent to break")
    tasks = TOY_TASKS[:2]
    clean, plan, _ = toy_run(tmp_path / "clean", name, seeds=(0, 1), tasks=tasks)
    broken = Store(shutil.copytree(tmp_path / "clean", tmp_path / "broken"))
    # Break seed 0's first task and train both second tasks again.
    for segment in plan.segments:
        folder = broken.folder(segment)
        if segment.position == 0 and segment.seed == 0:
            tensors, record = checkpoint.load(folder.end)
            for tensor, x in tensors.items():
                if tensor.startswith(("trainer/actor.", "method/")) and x.is_floating_point():
                    x.fill_(float("nan"))
            checkpoint.save(folder.end, tensors, record)
            folder.set_status("done", checksums=folder.seal())
        elif segment.position == 1:
            folder.end.unlink()
            folder.set_status("pending")
    _, _, outcome = toy_run(tmp_path / "broken", name, seeds=(0, 1), tasks=tasks)
    assert [folder for folder in outcome.diverged if "-s0-" in folder]
    assert_same(clean, broken, [s for s in plan.segments if s.seed == 1])


@pytest.mark.parametrize("name", METHODS)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_options_survive_the_record(name: str, data: Any) -> None:
    config = METHODS[name].method.config_class
    values = {f.name: data.draw(_values(field_type(config, f))) for f in dataclasses.fields(config)}
    made = config(**values)
    assert config.from_record(json.loads(json.dumps(made.record()))) == made


def _values(hint: Any) -> st.SearchStrategy[Any]:
    return st.from_type(hint).filter(lambda value: value == value)  # NaN equals nothing


@pytest.mark.parametrize("name", METHODS)
def test_options_have_help_and_no_namesakes(name: str) -> None:
    config = METHODS[name].method.config_class
    assert all(field.metadata["help"] for field in dataclasses.fields(config))
    shared = field_names(*GROUPS.values())
    assert not field_names(config) & shared
    known = field_names(config) | shared
    assert set(METHODS[name].options) | set(METHODS[name].method.preset) <= known

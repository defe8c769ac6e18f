"""What must hold for every registered method; a new one is covered by registering it."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cwbench.experiment.conformance import (
    CHECKS,
    Kit,
    member_equals_alone,
    neighbours_are_untouched,
    require_same,
    resumed_equals_uninterrupted,
    sweep_equals_alone,
)
from cwbench.methods import METHODS
from cwbench.rollout.pool import Pool
from cwbench.spec.config import (
    GROUPS,
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import field_names, field_type, per_run_names, resolve
from cwbench.spec.segment import Setup

SETUP = Setup(
    "x", MethodConfig(), SACConfig(), NetworkConfig(), MetaWorldConfig(), ScheduleConfig()
)


@pytest.fixture
def kit(name: str, tmp_path: Path, toy_pool: Pool) -> Kit:
    return Kit(name, tmp_path, toy_pool)


OWN = [name for name, entry in METHODS.items() if entry.base is None]
SWEPT = [name for name in OWN if per_run_names(METHODS[name].method.config_class)]


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


TRAINED = (
    member_equals_alone,
    sweep_equals_alone,
    resumed_equals_uninterrupted,
    neighbours_are_untouched,
)


@pytest.mark.parametrize("name", OWN)
def test_a_method_keeps_the_contract(name: str, kit: Kit) -> None:
    """All checks that train, in one test: they compare with the same runs."""
    for check in TRAINED:
        check(kit)


UNTRAINED = [check for check in CHECKS.values() if check not in TRAINED]


@pytest.mark.slow
@pytest.mark.parametrize("check", UNTRAINED, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", OWN)
def test_updates_keep_the_contract(name: str, check: Callable[[Kit], None], kit: Kit) -> None:
    check(kit)


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["actor", "actor,critic,replay,optimizer,heads"])
@pytest.mark.parametrize("name", OWN)
def test_with_a_reset_a_member_of_a_fleet_equals_the_run_alone(
    name: str, reset: str, kit: Kit
) -> None:
    if name == "reset-distill":  # which refuses to reset its actor
        reset = reset.replace("actor", "critic").replace("critic,critic", "critic")
    if METHODS[name].method.keeps_critic:
        reset = reset.replace("critic,", "")
    options = {"reset": reset}
    fleet = kit.train("fleet", seeds=(0, 1), options=options)
    alone = kit.train("alone", seeds=(1,), options=options)
    require_same(fleet.store, alone.store, alone.plan.segments)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_member_of_a_fleet_equals_the_run_alone_in_three_tasks(
    name: str, toy_run: Any, tmp_path: Path
) -> None:
    """With more than one old task, and at the length of the pinned runs; variants, too."""
    fleet, _, _ = toy_run(tmp_path / "fleet", name, seeds=(0, 1, 2))
    alone, plan, _ = toy_run(tmp_path / "alone", name, seeds=(1,))
    require_same(fleet, alone, plan.segments)


CONFIGS = dict.fromkeys(METHODS[name].method.config_class for name in OWN)


@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_options_survive_the_record(config: type[MethodConfig], data: Any) -> None:
    values = {f.name: data.draw(_values(field_type(config, f))) for f in dataclasses.fields(config)}
    made = config(**values)
    assert config.from_record(json.loads(json.dumps(made.record()))) == made


def _values(hint: Any) -> st.SearchStrategy[Any]:
    return st.from_type(hint).filter(lambda value: value == value)  # NaN equals nothing


@pytest.mark.parametrize("name", METHODS)
def test_variants_name_options_that_exist(name: str) -> None:
    known = field_names(METHODS[name].method.config_class, *GROUPS.values())
    assert set(METHODS[name].options) <= known

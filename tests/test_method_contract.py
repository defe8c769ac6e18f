"""What must hold for every registered method; a new one is covered by registering it."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cwbench.experiment.conformance import (
    CHECKS,
    Kit,
    hooks_keep_their_shapes,
    member_equals_alone,
    memory_stays,
    updates_can_be_captured,
)
from cwbench.experiment.toy import TASKS
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


# A named variant is its method with other options: it is slow, and what it saves is tested once.
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if entry.base else [])
    for name, entry in METHODS.items()
]


@pytest.mark.parametrize("name", NAMES)
def test_member_of_a_fleet_equals_the_run_alone(name: str, kit: Kit) -> None:
    member_equals_alone(kit, TASKS if METHODS[name].base is None else TASKS[:2])


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


REHEARSED = (hooks_keep_their_shapes, updates_can_be_captured, memory_stays)
OTHERS = [
    pytest.param(check, id=title, marks=[pytest.mark.slow] if check in REHEARSED else [])
    for title, check in CHECKS.items()
    if check is not member_equals_alone
]


@pytest.mark.parametrize("check", OTHERS)
@pytest.mark.parametrize("name", OWN)
def test_the_kit_finds_nothing(name: str, check: Callable[[Kit], None], kit: Kit) -> None:
    check(kit)


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
def test_variants_name_options_that_exist(name: str) -> None:
    known = field_names(METHODS[name].method.config_class, *GROUPS.values())
    assert set(METHODS[name].options) <= known

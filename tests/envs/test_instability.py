"""Simulations that became unstable are counted, not printed and logged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import pytest

from cwbench.envs.instability import silence, was_reset

BALL = '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'


@pytest.fixture(autouse=True)
def _loud() -> Iterator[None]:
    """As in a process that has not called `silence` yet, before and after each test."""
    mujoco.set_mju_user_warning(None)
    yield
    mujoco.set_mju_user_warning(None)


def unstable() -> Any:
    model = mujoco.MjModel.from_xml_string(BALL)
    data = mujoco.MjData(model)
    data.qvel[0] = 1e11
    mujoco.mj_step(model, data)
    return model, data


def test_a_reset_is_seen_until_the_next_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, data = unstable()
    assert was_reset(data) and data.qvel[0] == 0
    mujoco.mj_step(model, data)
    assert was_reset(data)
    mujoco.mj_resetData(model, data)
    mujoco.mj_step(model, data)
    assert not was_reset(data)


def test_it_is_neither_printed_nor_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    silence()
    unstable()
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_other_warnings_are_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    silence()
    mujoco.get_mju_user_warning()("Contact buffer is full.")
    assert capfd.readouterr().err == "MuJoCo: Contact buffer is full.\n"


def test_a_handler_of_the_user_s_stays() -> None:
    seen: list[str] = []
    mujoco.set_mju_user_warning(seen.append)
    silence()
    unstable()
    assert len(seen) == 1

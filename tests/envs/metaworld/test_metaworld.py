"""Tasks and what a step of each costs."""

import subprocess
import sys

import numpy as np
import pytest

from cwbench.envs.metaworld import make, step_cost
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

CW12, FULL39 = MetaWorldConfig(), MetaWorldConfig(obs="full39")


def test_names_are_meta_worlds():
    from metaworld.env_dict import ENV_CLS_MAP

    assert sorted(METAWORLD_TASKS) == sorted(name.removesuffix("-v3") for name in ENV_CLS_MAP)
    assert METAWORLD_TASKS[:10] == CW_TASKS
    assert (CW_TASKS[0], CW_TASKS[5], CW_TASKS[9]) == (
        "hammer",
        "handle-press-side",
        "peg-unplug-side",
    )


def test_listing_tasks_imports_nothing_heavy():
    code = "import sys, cwbench.envs; print({'torch', 'metaworld', 'mujoco'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "set()\n", result.stderr


def test_unknown_task_names_the_nearest():
    with pytest.raises(ValueError, match="'push-wal'; did you mean 'push-wall'"):
        make("push-wal", CW12)


def test_step_costs_are_relative_to_the_mean():
    costs = [step_cost(task, MetaWorldConfig(reward="v2")) for task in METAWORLD_TASKS]
    assert np.mean(costs) == pytest.approx(1, abs=0.01)
    assert min(costs) > 0.5 and max(costs) < 2


def test_tasks_that_step_as_meta_world_does_cost_more():
    assert step_cost("sweep", CW12) > max(step_cost(task, CW12) for task in CW_TASKS)

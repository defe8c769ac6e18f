"""The scenarios of the CSP study, and what their tasks change."""

from typing import Any

import pytest

from cwbench import sequences
from cwbench.sequences.gymnasium import ANT, CHEETAH, SCENARIOS, SEQUENCES


def changes(sequence: str) -> dict[str, dict[str, Any]]:
    """Task -> what its wrapper changes."""
    found = {}
    for task in sequences.get(sequence).definitions:
        [wrapper] = task.wrappers or ({"kwargs": {}},)
        assert isinstance(wrapper, dict)
        found[task.name] = wrapper["kwargs"]
    return found


@pytest.mark.parametrize("robot", SCENARIOS)
def test_every_list_is_trained_twice(robot: str) -> None:
    for scenario in SCENARIOS[robot]:
        tasks = sequences.get(f"{robot}-{scenario}").tasks
        assert len(tasks) == 8 and tasks[:4] == tasks[4:]


def test_every_task_of_a_scenario_is_known() -> None:
    for robot, tasks in (("cheetah", CHEETAH), ("ant", ANT)):
        used = {name for names in SCENARIOS[robot].values() for name in names.split()}
        assert used <= tasks.keys()


def test_tasks_change_what_their_names_say() -> None:
    cheetah = changes("cheetah-compositionality")
    both = {**cheetah["cheetah-tinyfoot"], **cheetah["cheetah-moon"]}
    assert cheetah["cheetah-tinyfoot_moon"] == both
    ant = changes("ant-transfer")["ant-disabled_forefeet"]["actions"]
    assert [index for index, factor in enumerate(ant) if factor == 0] == [2, 3, 4, 5]
    assert changes("ant-robustness")["ant-normal"] == {}


def test_the_gravities_of_the_pendulum() -> None:
    tasks = sequences.get("pendulum3").definitions
    assert [task.kwargs["g"] for task in tasks] == [1.6, 3.7, 9.8]
    assert len({one.name for one in SEQUENCES}) == len(SEQUENCES)

"""Sequences of gymnasium environments: a small one, and the CSP study's scenarios."""

from typing import Any

from cwbench.sequences.sequence import Sequence
from cwbench.spec.tasks import Score, Task

PHYSICS = "cwbench.envs.gymnasium.physics:Physics"
CSP = "factors of Gaya et al. 2023 (CSP) on gymnasium's models"

PENDULUM = tuple(
    Task(f"pendulum-{name}", "Pendulum-v1", {"g": gravity}, score=Score(-1200.0, -150.0))
    for name, gravity in {"moon": 1.6, "mars": 3.7, "earth": 9.8}.items()
)

# What each task changes, as arguments of `Physics`. docs/sequences.md says what is not as in CSP.
FEET = ("bfoot", "ffoot")
TORSO = {"torso": 4.0}
ANKLES = tuple(f"{leg}_ankle_geom" for leg in ("left", "right", "third", "fourth"))
CHEETAH: dict[str, dict[str, Any]] = {
    "normal": {},
    "tinyfoot": {"geoms": dict.fromkeys(FEET, 0.5)},
    "hugefoot": {"geoms": dict.fromkeys(FEET, 1.5)},
    "moon": {"gravity": 0.15},
    "rainfall": {"friction": 0.4},
    "carry_stuff": {"geoms": TORSO},
    "carry_stuff_hugegravity": {"geoms": TORSO, "gravity": 1.5},
    "hugefoot_rainfall": {"geoms": dict.fromkeys(FEET, 1.5), "friction": 0.4},
    "tinyfoot_moon": {"geoms": dict.fromkeys(FEET, 0.5), "gravity": 0.15},
    "defective_module": {"hidden": [2, 6, 7, 9, 11, 13, 14]},
    "inverted_actions": {"actions": [-1.0] * 6},
}
# The two actions of each leg, by CSP's numbers of legs.
LEGS = {1: (2, 3), 2: (4, 5), 3: (6, 7), 4: (0, 1)}


def _without(*legs: int) -> dict[str, Any]:
    off = [action for leg in legs for action in LEGS[leg]]
    return {"actions": [0.0 if action in off else 1.0 for action in range(8)]}


ANT: dict[str, dict[str, Any]] = {
    "normal": {},
    "hugefoot": {"geoms": dict.fromkeys(ANKLES, 1.5)},
    "moon": {"gravity": 0.7},
    "rainfall": {"friction": 0.375},
    "disabled_forefeet": _without(1, 2),
    "disabled_backfeet": _without(3, 4),
    "disabled_first_diagonal": _without(1, 3),
    "disabled_second_diagonal": _without(2, 4),
    "disabled_hard1": _without(2, 3, 4),
    "disabled_hard2": _without(1, 3, 4),
    "inverted_actions": {"actions": [-1.0] * 8},
}
SCENARIOS = {
    "cheetah": {
        "forgetting": "hugefoot moon carry_stuff rainfall",
        "transfer": "carry_stuff_hugegravity moon defective_module hugefoot_rainfall",
        "robustness": "normal inverted_actions normal inverted_actions",
        "compositionality": "tinyfoot moon carry_stuff_hugegravity tinyfoot_moon",
    },
    "ant": {
        "forgetting": "normal hugefoot rainfall moon",
        "transfer": "disabled_first_diagonal disabled_second_diagonal disabled_forefeet "
        "disabled_backfeet",
        "robustness": "normal inverted_actions normal inverted_actions",
        "compositionality": "disabled_hard1 disabled_hard2 disabled_forefeet disabled_backfeet",
    },
}
ROBOTS: dict[str, tuple[str, dict[str, Any], float, dict[str, dict[str, Any]]]] = {
    # id, arguments, return that scores 1, tasks
    "cheetah": ("HalfCheetah-v5", {}, 6000.0, CHEETAH),
    # Without contact forces an observation has 27 numbers, as in CSP, instead of 105.
    "ant": ("Ant-v5", {"include_cfrc_ext_in_observation": False}, 5000.0, ANT),
}


def _task(robot: str, name: str) -> Task:
    env, kwargs, best, changes = ROBOTS[robot]
    change = changes[name]
    wrappers = ({"wrapper": PHYSICS, "kwargs": change},) if change else ()
    return Task(f"{robot}-{name}", env, kwargs, wrappers, Score(0.0, best))


def _scenario(robot: str, name: str, tasks: str) -> Sequence:
    order = tasks.split() * 2  # CSP trains each list twice
    return Sequence(
        f"{robot}-{name}",
        tuple(f"{robot}-{task}" for task in order),
        "gymnasium",
        tuple(_task(robot, task) for task in dict.fromkeys(order)),
        CSP,
        summary=f"{tasks}, twice",
    )


SEQUENCES = (
    Sequence(
        "pendulum3",
        tuple(task.name for task in PENDULUM),
        "gymnasium",
        PENDULUM,
        "cwbench: Pendulum-v1 under three gravities",
    ),
    *(
        _scenario(robot, name, tasks)
        for robot, scenarios in SCENARIOS.items()
        for name, tasks in scenarios.items()
    ),
)

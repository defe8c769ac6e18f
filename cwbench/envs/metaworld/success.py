"""The success tests of Meta-World V1 for the ten tasks of Continual World, on V3's simulation.

Source: `metaworld/envs/mujoco/sawyer_xyz/v1/sawyer_*.py` at rlworkgroup/metaworld 0875192b, the
commit that Continual World pins. docs/success.md tabulates them next to Meta-World 3's.

Each test takes the simulation and the 39 observed numbers, and holds for that step alone.
"""

from collections.abc import Mapping
from typing import Any

from cwbench.envs.metaworld.env import SuccessTest, Vector
from cwbench.envs.metaworld.rewards import norm


def in_plane(limit: float) -> SuccessTest:
    """The object's horizontal distance to the goal."""
    return lambda sim, obs: norm(obs[4:6] - sim._target_pos[:2]) <= limit


def in_space(limit: float) -> SuccessTest:
    return lambda sim, obs: norm(obs[4:7] - sim._target_pos) <= limit


def along(axis: int, limit: float) -> SuccessTest:
    """The object's distance to the goal along one axis: 0 is x, 1 is y, 2 is z."""
    return lambda sim, obs: bool(abs(obs[4 + axis] - sim._target_pos[axis]) <= limit)


def hammer(sim: Any, obs: Vector) -> bool:
    """V1 measures at the screw's head, here it is the nail: both move with the joint."""
    return bool(abs(sim.get_body_com("nail_link")[1] - sim._target_pos[1]) <= 0.05)


def stick_pull(sim: Any, obs: Vector) -> bool:
    """The container at the goal, the stick in the fingers."""
    arrived = norm(obs[11:13] - sim._target_pos[:2]) <= 0.08
    return arrived and norm(obs[4:7] - sim.tcp_center) <= 0.05


V1: Mapping[str, SuccessTest] = {
    "hammer": hammer,  # sawyer_hammer.py: 53, 127
    "push-wall": in_plane(0.07),  # sawyer_reach_push_pick_place_wall.py: 78, 189
    "faucet-close": in_space(0.05),  # sawyer_faucet_close.py: 53, 100
    "push-back": in_plane(0.07),  # sawyer_push_back.py: 55, 113
    "stick-pull": stick_pull,  # sawyer_stick_pull.py: 61, 133, 135
    "handle-press-side": along(2, 0.04),  # sawyer_handle_press_side.py: 54, 112
    "push": in_plane(0.07),  # sawyer_reach_push_pick_place.py: 79, 190
    "shelf-place": in_space(0.08),  # sawyer_shelf_place.py: 64, 124
    "window-close": along(0, 0.05),  # sawyer_window_close.py: 60, 109
    "peg-unplug-side": in_plane(0.07),  # sawyer_peg_unplug_side.py: 57, 113
}

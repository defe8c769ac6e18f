"""The rewards of Meta-World V1 for the ten tasks of Continual World, on V3's simulation.

Common core: `-reach + [reach < 5 cm] * max(0, 1000 (farthest - d) + B(d))`, where reach is the
distance from the fingers to the object, d what is left to do, farthest the value of d at reset and
`B(d) = 1000 (exp(-d^2 / .01) + exp(-d^2 / .001))`. Lengths are metres, so a solved step is worth
about 2000 and an untouched one about -0.2.

Each reward takes the simulation (whose reset left the episode's constants in Meta-World's own
attributes), the 39 observed numbers and the action, and gives (reward, success). The expressions
keep Meta-World's order of operations and its numpy functions: the tests compare with `==`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cwbench.envs.metaworld.env import Vector
from cwbench.spec.config import MetaWorldConfig

Reward = Callable[[Any, Vector, Vector], tuple[float, bool]]


def norm(vector: Vector) -> float:
    """Bit for bit `np.linalg.norm`, at a third of its cost."""
    return math.sqrt(vector.dot(vector))


def bump(distance: float) -> float:
    """B(d) above.

    A power and not a product, numpy's exp and not the C library's: either differs in the last bit
    now and then.
    """
    square = distance**2
    return float(1000 * (np.exp(-square / 0.01) + np.exp(-square / 0.001)))


def closing(action: Vector) -> float:
    """A little for closing the fingers, 0 to 0.02; in float32 like the action."""
    return float(max(action[3], np.float32(0)) / 50)


def push(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    reward, distance = _push(sim, obs)
    return reward, distance <= 0.05


def push_wall(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    reward, distance = _push(sim, obs)
    return reward, distance <= 0.07


def _push(sim: Any, obs: Vector) -> tuple[float, float]:
    """Reward, and the puck's distance to the goal in the plane."""
    puck = obs[4:7]
    reach = norm(puck - sim.tcp_center)
    distance = norm(puck[:2] - sim._target_pos[:2])
    return -reach + _if_reached(reach, sim.maxPushDist, distance), distance


def push_back_shaped(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    """As V1 had it: approach from above. Meta-World 3 dropped that part (`push_wall`).

    Not the default: on V3's heavier puck SAC never gets past hovering over it (docs/learning.md).
    """
    puck, fingers = obs[4:7], sim.tcp_center
    reach = norm(puck - fingers)
    distance = norm(puck[:2] - sim._target_pos[:2])
    approach = _approach(puck, fingers, reach, float(sim.hand_init_pos[2]), action)
    return approach + _if_reached(reach, sim.maxPushDist, distance), distance <= 0.07


def peg_unplug_side(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    peg, fingers = obs[4:7], sim.tcp_center
    reach = norm(peg - fingers)
    distance = norm(peg[:2] - sim._target_pos[:2])
    approach = _approach(peg, fingers, reach, float(sim.hand_init_pos[2]), action)
    return approach + _if_reached(reach, sim.maxPlacingDist, distance), distance <= 0.07


def faucet_close(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    handle = obs[4:7]
    reach = norm(handle - sim.tcp_center)
    distance = norm(handle - sim._target_pos)
    return -reach + _if_reached(reach, sim.maxPullDist, distance), distance <= 0.07


def handle_press_side(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    """The left finger alone has to be near: it is the one that presses."""
    handle = obs[4:7]
    reach = norm(handle - sim.sites["leftEndEffector"])
    distance = abs(float(handle[2] - sim._target_pos[2]))
    return -reach + _if_reached(reach, sim.maxDist, distance), distance <= 0.02


def window_close(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    """The only one whose second part may be negative."""
    handle = obs[4:7]
    reach = norm(handle - sim.tcp_center)
    distance = abs(float(handle[0] - sim._target_pos[0]))
    pull = 1000 * (sim.maxPullDist - distance) + bump(distance) if reach < 0.05 else 0.0
    return -reach + pull, distance <= 0.05


def shelf_place(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    block, fingers = obs[4:7], sim.tcp_center
    reach = norm(block - fingers)
    distance = norm(block - sim._target_pos)
    picked = bool(block[2] >= sim.heightTarget - 0.01)
    dropped = _dropped(block[2], sim.objHeight, distance, reach)
    approach = _approach(block, fingers, reach, float(sim.init_tcp[2]), action)
    lift = _lift(block[2], sim.objHeight, sim.heightTarget, reach, held=picked and not dropped)
    place = 0.0
    if picked and reach < 0.1 and not dropped:
        place = max(1000 * (sim.maxPlacingDist - distance) + bump(distance), 0.0)
    return float(approach + lift + place), distance <= 0.07


def stick_pull(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    return _stick_pull(sim, obs, action, container=obs[11:14])


def stick_pull_stock(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    """Meta-World 3 looks for the container where V1's observation had it: at the stick's tilt."""
    return _stick_pull(sim, obs, action, container=obs[6:9])


def _stick_pull(sim: Any, obs: Vector, action: Vector, *, container: Vector) -> tuple[float, bool]:
    """Lift the stick, bring it to the container (place), pull the container to the goal (pull)."""
    stick, handle = obs[4:7], obs[11:14]
    reach = norm(stick - sim.tcp_center)
    pull = norm(container[:2] - sim._target_pos[:2])
    place = norm(stick - container)
    picked = bool(stick[2] >= sim.heightTarget - 0.01)
    dropped = _dropped(stick[2], sim.stickHeight, pull, reach)
    approach = -reach + closing(action) if reach < 0.05 else -reach
    lift = _lift(stick[2], sim.stickHeight, sim.heightTarget, reach, held=picked and not dropped)
    work = 0.0
    if picked and reach < 0.1 and not dropped:
        work = 1000 * (sim.maxPlaceDist - place) + bump(place)
        if place < 0.05:
            work += 1000 * (sim.maxPullDist - pull) + 2 * bump(pull)
        work = max(work, 0.0)
    solved = norm(handle - sim._target_pos) <= 0.12 and bool(
        sim._stick_is_inserted(handle, sim.sites["stick_end"])
    )
    return float(approach + lift + work), solved


def hammer(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    """As V1 had it: the nail that moves, a latched pick, and the way from the nail's start."""
    sim.pickCompleted = bool(sim.pickCompleted or obs[6] >= sim.heightTarget - 0.01)
    return _hammer(sim, obs, action, nail=sim.bodies["nail_link"], farthest=sim.hammer_farthest)


def hammer_stock(sim: Any, obs: Vector, action: Vector) -> tuple[float, bool]:
    """Meta-World 3 measures from a site that stays put when the nail is driven in."""
    sim.pickCompleted = bool(obs[6] >= sim.heightTarget - 0.01)
    return _hammer(sim, obs, action, nail=sim.sites["nailHead"], farthest=sim.maxHammerDist)


def _hammer(
    sim: Any, obs: Vector, action: Vector, *, nail: Vector, farthest: float
) -> tuple[float, bool]:
    handle = obs[4:7]
    head_to_nail = norm(nail - sim.sites["HammerHead"])
    nail_to_goal = abs(float(nail[1] - sim._target_pos[1]))
    reach = norm(handle - sim.tcp_center)
    dropped = _dropped(handle[2], sim.hammerHeight, head_to_nail, reach)
    held = sim.pickCompleted and not dropped
    approach = -reach + closing(action) if reach < 0.05 else -reach
    lift = _lift(handle[2], sim.hammerHeight, sim.heightTarget, reach, held=held)
    hit = 0.0
    if held and reach < 0.1:
        left = head_to_nail + nail_to_goal
        hit = max(1000 * (farthest - head_to_nail - nail_to_goal) + bump(left), 0.0)
    return float(approach + lift + hit), bool(sim.nail_joint[0] > 0.09)


def measure_hammer(sim: Any) -> None:
    """At reset: from the lifted hammer to the nail, plus the lift, plus the nail's way."""
    nail = sim.bodies["nail_link"]
    lifted = np.array([sim.hammer_init_pos[0], sim.hammer_init_pos[1], sim.heightTarget])
    way = abs(float(nail[1] - sim._target_pos[1]))
    sim.hammer_farthest = norm(lifted - nail) + float(sim.heightTarget) + way


def _if_reached(reach: float, farthest: float, distance: float) -> float:
    if reach < 0.05:
        return max(float(1000 * (farthest - distance) + bump(distance)), 0.0)
    return 0.0


def _approach(
    target: Vector, fingers: Vector, reach: float, cruising_height: float, action: Vector
) -> float:
    """Come over the target at the height of the start, then go down, then close."""
    if reach < 0.05:
        return -reach + closing(action)
    reach_in_plane = norm(target[:2] - fingers[:2])
    if reach_in_plane < 0.05:
        return -reach
    return -reach_in_plane - 2 * abs(float(fingers[2] - cruising_height))


def _dropped(height: float, start_height: float, distance: float, reach: float) -> bool:
    """On the table, away from the goal and away from the fingers."""
    return bool(height < start_height + 0.005 and distance > 0.02 and reach > 0.02)


def _lift(
    height: float, start_height: float, target_height: float, reach: float, *, held: bool
) -> float:
    if held:
        return 100 * target_height
    if reach < 0.1 and height > start_height + 0.005:
        return 100 * min(target_height, height)
    return 0.0


# The v1 rewards exactly as Meta-World 3.1.1 computes them; the reference of the tests.
STOCK_V1: Mapping[str, Reward] = {
    "hammer": hammer_stock,
    "push-wall": push_wall,
    "faucet-close": faucet_close,
    "push-back": push_wall,
    "stick-pull": stick_pull_stock,
    "handle-press-side": handle_press_side,
    "push": push,
    "shelf-place": shelf_place,
    "window-close": window_close,
    "peg-unplug-side": peg_unplug_side,
}

# What the harness uses. quirk: two of the ten differ from Meta-World 3.1.1, towards V1.
CW_V1: Mapping[str, Reward] = {**STOCK_V1, "hammer": hammer, "stick-pull": stick_pull}


def choose(task: str, config: MetaWorldConfig) -> Reward:
    """The V1 formula of a task: repaired, or as the library has it."""
    if config.reward == "stock_v1":
        return STOCK_V1[task]
    if task == "push-back" and config.push_back_shaping:
        return push_back_shaped
    return CW_V1[task]

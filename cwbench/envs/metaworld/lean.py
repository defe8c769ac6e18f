"""Fast simulation of all fifty tasks, bit-identical to Meta-World's.

Meta-World spends most of a step in Python: name look-ups, quaternions, and a contact test that
feeds one entry of `info`. Here the same numbers come from cached views of MuJoCo's arrays, V1's
rewards from `rewards.py`, and v2's from Meta-World's own code as `rewrite.py` rewrites it.
"""

import math
import struct
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from mujoco import mj_forward, mj_makeConstraint, mj_referenceConstraint, mj_step, mj_step2

from cwbench.envs.metaworld import rewards, rewrite, scalars, success
from cwbench.envs.metaworld.env import MetaWorldEnv, Vector, is_owned
from cwbench.envs.metaworld.lookups import Lookups
from cwbench.envs.metaworld.stock import Stock, build, stock_class
from cwbench.envs.mujoco_state import get_state, set_state
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS

SUBSTEPS = 5  # of the simulator per step: 80 Hz
SETTLE_SUBSTEPS = 250  # at reset, to bring the hand to its start
OPEN_HAND = (-1.0, 1.0)  # the two finger actuators
HAND_DOWN = [1.0, 0.0, 1.0, 0.0]  # a quaternion
FLOAT32 = struct.Struct("3f")  # rounds three numbers to float32 and back
CENTIMETRE = float(np.float32(0.01))  # a step's reach at action 1
HALF = np.full(3, 0.5)
NO_ROTATIONS, NO_SECOND_OBJECT = [0.0] * 8, [0.0] * 7
LARGEST_SQUARE = 1e18  # of a state; beyond 1e10 MuJoCo resets the simulation

# In these the episode's fixture touches or turns something while the hand settles. In the other
# forty the settled state is bit-identical for every vector, and is kept.
SETTLES_EVERY_RESET = {
    *("peg-unplug-side", "handle-press-side", "handle-press", "handle-pull-side", "handle-pull"),
    *("box-close", "disassemble", "door-lock", "door-unlock", "lever-pull"),
}
# Attributes that are views of MuJoCo's memory: not constant in an episode.
LIVE = {
    "basketball": ("_target_pos",),
    "bin-picking": ("_target_pos",),
    "door-lock": ("obj_init_pos",),
    "door-unlock": ("obj_init_pos",),
}
# Rotations of objects enter these v2 rewards, so they are needed whatever the agent observes.
REWARD_READS_ROTATIONS = ("hammer", "assembly", "disassemble", "box-close")
# Tasks with a caging reward of their own; the numbers are arguments of `scalars.own_caging`.
OWN_CAGING = {
    "push-back": (0.003, 0.01),
    "soccer": (0.01, 0.005),
    "sweep": (0.01, 0.005),
    "sweep-into": (0.005, 0.01),
}


def make(task: str, config: MetaWorldConfig, *, visual: bool = False) -> MetaWorldEnv:
    """The environment of one of the fifty tasks with v2 rewards, of the ten with V1's."""
    v1 = config.reward != "v2"
    full = config.obs == "full39"
    faster, names = ({}, {}) if v1 else faster_methods(task)
    mixin = type("Lean", (type("Rewritten", (), faster), Lean), {})
    sim = build(
        task,
        mixin,
        visual=visual,
        reward_version="v1" if v1 else "v2",
        horizon=config.horizon,
        reward=staticmethod(rewards.choose(task, config)) if v1 else None,
        settles_alike=task not in SETTLES_EVERY_RESET,
        # quirk: where a reset moves a joint without updating positions, Meta-World's first
        # observation is wrong; by 0.2 m in window-close. The ten tasks show the truth.
        updates_at_reset=task in CW_TASKS,
        sees_gripper=full or not v1,
        sees_rotations=full or (not v1 and task in REWARD_READS_ROTATIONS),
    )
    # Methods that a reward calls by the class's name are the rewritten ones, too.
    names[stock_class(task).__name__] = type(sim)
    return MetaWorldEnv(task, config, sim, success.V1.get(task))


def faster_methods(task: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task's v2 reward and observation as `rewrite.methods` gives them, with our caging."""
    caging: dict[str, Any] = {}
    if task in OWN_CAGING:
        numbers = OWN_CAGING[task]
        caging["_gripper_caging_reward"] = lambda self, action, obj_pos, obj_radius: (
            scalars.own_caging(self, obj_pos, obj_radius, *numbers)
        )
    if task == "pick-place":
        caging["_gripper_caging_reward"] = scalars.pick_place_caging
    if task == "stick-push":
        caging["caging_start"] = "stick_init_pos"
    without = ("_gripper_caging_reward",) if caging else ()
    live = LIVE.get(task, ())
    found, names = rewrite.methods(stock_class(task), without=without, live=live)
    return found | caging, names


class Lean(Lookups, Stock):
    """Mixed into a Meta-World class: its reset, our model and stepping.

    With V1's rewards `reward` is one of `rewards.py`; with v2's it is None, and `evaluate_state`
    is the rewritten one, which returns reward and success.
    """

    reward: rewards.Reward | None
    settles_alike: bool
    updates_at_reset: bool
    sees_gripper: bool  # whether anyone reads these two parts of the 39 numbers
    sees_rotations: bool

    # What the Meta-World class brings along.
    hand_init_pos: Vector
    evaluate_state: Callable[[Vector, Vector], tuple[float, bool]]
    _target_pos: Vector
    _get_pos_objects: Callable[[], Vector]
    _get_quat_objects: Callable[[], Vector]

    _settled: Vector | None = None
    _settling = False

    def begin(self, rand_vec: Vector) -> Vector:
        self._last_rand_vec = rand_vec
        # Meta-World resets twice. The first pass matters only because it puts the fixture in
        # place before the hand settles; it also finds out whether the vector is allowed.
        self._settling = False
        self._restart()
        self._settling = True
        self._restart()
        if self.updates_at_reset:
            # The solver's warm start goes back so that the episode continues as Meta-World's does.
            warm_start = self.data.qacc_warmstart.copy()
            mj_forward(self.model, self.data)
            self.data.qacc_warmstart[:] = warm_start
        if self.reward is rewards.hammer:
            rewards.measure_hammer(self)
        self.episode = {}
        self._goal = self._clipped_goal() if is_owned(self._target_pos) else None
        self._continues = False
        present = self._present()
        first = np.array([*present, *present, *self._target_pos.tolist()])
        self._clip_hand(present)
        self._frames = np.array([*present, *present, *self._target_pos.tolist()])
        return first  # not clipped, as in Meta-World

    def advance(self, action: Vector) -> tuple[Vector, float, bool]:
        self._move_target(action)
        self._simulate()
        present = self._present()
        self._clip_hand(present)
        present += self._frames[:18].tolist()
        present += self._goal or self._clipped_goal()
        self._frames = obs = np.array(present)
        if self.reward is not None:
            reward, success = self.reward(self, obs, action)
            return obs, float(reward), success
        right, left = self._fingertips
        self.tcp = (right + left) * HALF
        reward, success = self.evaluate_state(obs, action)
        return obs, float(reward), bool(success)

    def _move_target(self, action: Vector) -> None:
        """Move the hand's target and set the controls."""
        # Meta-World clips and scales in float32. A product of two float32 is exact in double
        # precision, so rounding it once gives the same bits.
        x, y, z, grip = action.tolist()
        if not (-1.0 <= x <= 1.0 and -1.0 <= y <= 1.0 and -1.0 <= z <= 1.0):
            x, y, z = np.minimum(np.maximum(action[:3], -1), 1).tolist()  # NaN stays NaN
        moves = FLOAT32.unpack(FLOAT32.pack(x * CENTIMETRE, y * CENTIMETRE, z * CENTIMETRE))
        target = self._mocap
        low, high = self._reach
        for axis, (at, move) in enumerate(zip(target.tolist(), moves, strict=True)):
            to = at + move
            target[axis] = low[axis] if to < low[axis] else high[axis] if to > high[axis] else to
        control = self._control
        control[0] = grip
        control[1] = -grip

    def _simulate(self) -> None:
        """Five substeps, and an update of everything derived from the state.

        Since the update that closed the previous step only target and controls have changed, and
        the target collides with nothing. So the first substep reuses its positions, contacts and
        forces and rebuilds the constraints alone; the outcome is bit-identical. It does not after a
        reset, nor for states that MuJoCo may reset, which only `mj_step` checks.
        """
        model, data, turn = self.model, self.data, self._turn
        if turn.tolist() != HAND_DOWN:  # MuJoCo has reset a simulation that diverged
            turn[:] = HAND_DOWN
            self._continues = False
        qpos, qvel = self._qpos, self._qvel
        if self._continues and qvel.dot(qvel) < LARGEST_SQUARE > qpos.dot(qpos):
            self._target_body[:] = self._mocap
            mj_makeConstraint(model, data)
            mj_referenceConstraint(model, data)
            mj_step2(model, data)
            mj_step(model, data, SUBSTEPS - 1)
        else:
            mj_step(model, data, SUBSTEPS)
            self._continues = True
        mj_forward(model, data)

    def _present(self) -> list[float]:
        """The present 18 numbers: hand, gripper, two objects with rotations; not clipped."""
        hand, right, left = self._hand
        present: list[float] = hand.tolist()
        opening = 0.0
        if self.sees_gripper:
            apart = right - left
            opening = math.sqrt(apart.dot(apart)) / 0.1
        present.append(opening if opening < 1.0 else 1.0)
        self.objects = self._get_pos_objects()
        objects = self.objects.tolist()
        rotations = self._get_quat_objects().tolist() if self.sees_rotations else NO_ROTATIONS
        present += objects[:3]
        present += rotations[:4]
        if len(objects) == 3:
            present += NO_SECOND_OBJECT
        else:
            present += objects[3:]
            present += rotations[4:]
        return present

    def _clip_hand(self, present: list[float]) -> None:
        """To the observation's box; the other numbers cannot leave it."""
        low, high = self._hand_box
        x, y, z = present[:3]
        if low[0] <= x <= high[0] and low[1] <= y <= high[1] and low[2] <= z <= high[2]:
            return
        present[:3] = np.minimum(np.maximum(present[:3], low), high).tolist()

    def _clipped_goal(self) -> list[float]:
        box = self.sawyer_observation_space
        goal: list[float] = np.minimum(
            np.maximum(self._target_pos, box.low[36:]), box.high[36:]
        ).tolist()
        return goal

    def _restart(self) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.reset_model()

    def _reset_hand(self, steps: int = 50) -> None:
        if self._settling:
            self._settle()
        self.init_tcp = self.tcp_center

    def _settle(self) -> None:
        """Hold the hand's target until it has arrived.

        The last substep is always simulated: positions then fit the fixture of this episode.
        """
        if self._settled is None:
            self._mocap[:] = self.hand_init_pos
            self._turn[:] = HAND_DOWN
            self._control[:] = OPEN_HAND
            mj_step(self.model, self.data, SETTLE_SUBSTEPS - 1)
            if self.settles_alike:
                self._settled = get_state(self)
        else:
            set_state(self, self._settled)
        mj_step(self.model, self.data)

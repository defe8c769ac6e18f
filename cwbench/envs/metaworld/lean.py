"""Fast simulation of the ten Continual World tasks, bit for bit what Meta-World computes.

Meta-World spends most of a step in Python: name look-ups, quaternions, and a contact test that
feeds one entry of `info`. Here the same numbers come from cached views of MuJoCo's arrays.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from cwbench.envs.metaworld import models, rewards, success
from cwbench.envs.metaworld.env import MetaWorldEnv, Vector, get_state, set_state
from cwbench.envs.metaworld.stock import Stock, build
from cwbench.spec.config import MetaWorldConfig

SUBSTEPS = 5  # of the simulator per step: 80 Hz
SETTLE_SUBSTEPS = 250  # at reset, to bring the hand to its start
OPEN_HAND = (-1.0, 1.0)  # the two finger actuators
HAND_DOWN = np.array([1.0, 0.0, 1.0, 0.0])  # a quaternion

# In these two the episode's fixture touches something that moves while the hand settles. In the
# other eight the outcome is the same for every vector, to the last bit, and is kept.
SETTLES_ANEW = ("peg-unplug-side", "handle-press-side")


def make(task: str, config: MetaWorldConfig) -> MetaWorldEnv:
    """The environment of one of the ten tasks."""
    v1 = config.reward != "v2"
    sim = build(
        task,
        Lean,
        reward_version="v1" if v1 else "v2",
        horizon=config.horizon,
        reward=staticmethod(rewards.choose(task, config)) if v1 else None,
        settles_alike=task not in SETTLES_ANEW,
        sees_gripper=config.obs == "full39" or not v1,
        sees_turns=config.obs == "full39" or (not v1 and task == "hammer"),
    )
    return MetaWorldEnv(task, config, sim, success.V1[task])


class Lean(Stock):
    """Mixed into one of the ten classes: its reset and its v2 reward, our model and stepping."""

    reward: rewards.Reward | None  # None: Meta-World's v2
    settles_alike: bool
    sees_gripper: bool  # whether anyone reads these two parts of the 39 numbers
    sees_turns: bool

    # What the Meta-World class brings along.
    model: Any
    data: Any
    model_name: str
    observation_space: Any
    mocap_low: Vector
    mocap_high: Vector
    hand_init_pos: Vector
    evaluate_state: Callable[[Vector, Vector], tuple[float, dict[str, Any]]]
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
        # quirk: window-close moves its joint without updating positions, so Meta-World's first
        # observation is 0.2 m off. An update changes nothing elsewhere; the solver's warm start
        # goes back so that the episode still continues as Meta-World's does.
        warm_start = self.data.qacc_warmstart.copy()
        mujoco.mj_forward(self.model, self.data)
        self.data.qacc_warmstart[:] = warm_start
        if self.reward is rewards.hammer:
            rewards.measure_hammer(self)
        self._observe()
        self._frames[18:36] = self._frames[:18]
        return self._frames.copy()

    def advance(self, action: Vector) -> tuple[Vector, float, bool]:
        # float32 until it meets the target's float64, as in Meta-World.
        move = np.minimum(np.maximum(action[:3], -1), 1) * 0.01
        target = self._mocap
        target += move
        np.maximum(target, self.mocap_low, out=target)
        np.minimum(target, self.mocap_high, out=target)
        self._turn[:] = HAND_DOWN  # it stays that, unless MuJoCo resets a simulation that diverged
        self._control[:] = action[3], -action[3]
        mujoco.mj_step(self.model, self.data, SUBSTEPS)
        mujoco.mj_forward(self.model, self.data)

        self._frames[18:36] = self._frames[:18]
        self._observe()
        box = self.observation_space
        obs = np.minimum(np.maximum(self._frames, box.low), box.high)
        if self.reward is not None:
            reward, success = self.reward(self, obs, action)
            return obs, float(reward), success
        reward, info = self.evaluate_state(obs, action)
        return obs, float(reward), bool(info["success"])

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
            mujoco.mj_step(self.model, self.data, SETTLE_SUBSTEPS - 1)
            if self.settles_alike:
                self._settled = get_state(self)
        else:
            set_state(self, self._settled)
        mujoco.mj_step(self.model, self.data)

    def _observe(self) -> None:
        """The present into the first 18 of the 39 numbers."""
        frames = self._frames
        frames[:3] = self.bodies["hand"]
        objects = self._get_pos_objects()
        frames[4:7] = objects[:3]
        if len(objects) > 3:
            frames[11:14] = objects[3:]
        if self.sees_gripper:
            opening = rewards.norm(self.bodies["rightclaw"] - self.bodies["leftclaw"]) / 0.1
            frames[3] = min(max(opening, 0.0), 1.0)
        if self.sees_turns:
            turns = self._get_quat_objects()
            frames[7:11] = turns[:4]
            if len(turns) > 4:
                frames[14:18] = turns[4:]
        frames[36:] = self._target_pos

    # From here on: Meta-World's own look-ups, answered from views made once.

    def _initialize_simulation(self) -> tuple[Any, Any]:
        model = models.load(Path(self.model_name))
        return model, mujoco.MjData(model)

    @cached_property
    def bodies(self) -> dict[str, Vector]:
        """Positions by name, each a view that follows the simulation."""
        return {self.model.body(i).name: self.data.xpos[i] for i in range(self.model.nbody)}

    @cached_property
    def sites(self) -> dict[str, Vector]:
        return {self.model.site(i).name: self.data.site_xpos[i] for i in range(self.model.nsite)}

    @cached_property
    def nail_joint(self) -> Vector:
        joint: Vector = self.data.joint("NailSlideJoint").qpos
        return joint

    @cached_property
    def _mocap(self) -> Vector:
        position: Vector = self.data.mocap_pos[0]
        return position

    @cached_property
    def _turn(self) -> Vector:
        quaternion: Vector = self.data.mocap_quat[0]
        return quaternion

    @cached_property
    def _control(self) -> Vector:
        control: Vector = self.data.ctrl
        return control

    @cached_property
    def _frames(self) -> Vector:
        """The present 18 numbers, the previous 18, the goal; not clipped."""
        return np.zeros(39)

    @property
    def tcp_center(self) -> Vector:
        center: Vector = (self.sites["rightEndEffector"] + self.sites["leftEndEffector"]) / 2.0
        return center

    @property
    def touching_main_object(self) -> bool:
        """Only for an entry of `info` that nobody reads here."""
        return False

    def get_body_com(self, body_name: str) -> Vector:
        return self.bodies[body_name]

    def _get_site_pos(self, site_name: str) -> Vector:
        return self.sites[site_name].copy()

    def _get_curr_obs_combined_no_goal(self) -> Vector:
        """Meta-World observes while it resets; `begin` does so once, at the end."""
        return np.zeros(18)

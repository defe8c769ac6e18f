"""Meta-World's look-ups of bodies, sites and joints, answered from views made once."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from cwbench.envs.metaworld import models, scalars
from cwbench.envs.metaworld.env import Vector, is_owned


class Views(dict[str, Vector]):
    """MuJoCo's arrays by "kind.name.attribute", each looked up once."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __missing__(self, key: str) -> Vector:
        kind, name, attribute = key.split(".")
        view: Vector = getattr(getattr(self.data, kind)(name), attribute)
        self[key] = view
        return view


class Lookups:
    """Mixed into a Meta-World class: parts of MuJoCo's arrays by name, each a view of them."""

    caging_start = "obj_init_pos"
    visual = False  # whether the model can be drawn

    # What the Meta-World class brings along.
    model: Any
    data: Any
    model_name: str
    sawyer_observation_space: Any
    mocap_low: Vector
    mocap_high: Vector
    obj_init_pos: Vector
    init_tcp: Vector
    _get_id_main_object: Callable[[], int]

    episode: dict[str, Any]  # what was computed once for all of an episode's steps

    def _initialize_simulation(self) -> tuple[Any, Any]:
        xml = Path(self.model_name)
        model = models.compile_model(xml, visual=True) if self.visual else models.load(xml)
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
    def views(self) -> Views:
        return Views(self.data)

    @cached_property
    def left_pad(self) -> Vector:
        return self.bodies["leftpad"]

    @cached_property
    def right_pad(self) -> Vector:
        return self.bodies["rightpad"]

    @cached_property
    def _pad_geoms(self) -> tuple[int, int]:
        return self.data.geom("leftpad_geom").id, self.data.geom("rightpad_geom").id

    @cached_property
    def _fingertips(self) -> tuple[Vector, Vector]:
        return self.sites["rightEndEffector"], self.sites["leftEndEffector"]

    @cached_property
    def _hand(self) -> tuple[Vector, Vector, Vector]:
        return self.bodies["hand"], self.bodies["rightclaw"], self.bodies["leftclaw"]

    @cached_property
    def _hand_box(self) -> tuple[list[float], list[float]]:
        box = self.sawyer_observation_space
        return box.low[:3].tolist(), box.high[:3].tolist()

    @cached_property
    def _reach(self) -> tuple[list[float], list[float]]:
        return self.mocap_low.tolist(), self.mocap_high.tolist()

    @cached_property
    def _target_body(self) -> Vector:
        return self.bodies["mocap"]

    @cached_property
    def _qpos(self) -> Vector:
        position: Vector = self.data.qpos
        return position

    @cached_property
    def _qvel(self) -> Vector:
        velocity: Vector = self.data.qvel
        return velocity

    @property
    def tcp_center(self) -> Vector:
        center: Vector = (self.sites["rightEndEffector"] + self.sites["leftEndEffector"]) / 2.0
        return center

    def get_body_com(self, body_name: str) -> Vector:
        return self.bodies[body_name]

    def _get_site_pos(self, site_name: str) -> Vector:
        return self.sites[site_name].copy()

    def _get_curr_obs_combined_no_goal(self) -> Vector:
        """Meta-World observes while it resets; `begin` does so once, at the end."""
        return np.zeros(18)

    # What rewritten rewards ask for.

    def _gripper_caging_reward(self, *arguments: Any, **options: Any) -> Any:
        return scalars.caging(self, *arguments, **options)

    def caging_constants(self, xz_thresh: float, reach: float) -> tuple[float, float, float]:
        """y of the object at the start, and the two margins of the common caging reward."""
        known = self.episode.get("caging")
        if known is None:
            start = getattr(self, self.caging_start)
            way = start - self.init_tcp
            margins = scalars.norm(way.take(scalars.XZ)) - xz_thresh, scalars.norm(way) - reach
            known = float(start[1]), margins[0], abs(margins[1])
            if is_owned(start):
                self.episode["caging"] = known
        return known

    def flat_margin(self, xz_margin: float) -> float:
        known = self.episode.get("flat")
        if known is None:
            way = self.obj_init_pos - self.init_tcp
            way[1] = 0.0
            known = scalars.norm(way) - xz_margin
            if is_owned(self.obj_init_pos):
                self.episode["flat"] = known
        return known

    @property
    def touching_main_object(self) -> bool:
        """Whether both pads press on the object. Only stick-push's success reads it."""
        data, thing = self.data, self._get_id_main_object()
        pairs, rows = data.contact.geom.tolist(), data.contact.efc_address.tolist()
        return all(
            sum(
                data.efc_force[row]
                for pair, row in zip(pairs, rows, strict=True)
                if pad in pair and thing in pair
            )
            > 0
            for pad in self._pad_geoms
        )

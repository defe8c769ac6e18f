"""Changed physics, actions and observations of a MuJoCo environment, as a wrapper."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import mujoco
import numpy as np


class Physics(gymnasium.Wrapper):  # type: ignore[misc]
    """Multiplies gravity, friction, bodies and actions by factors, and hides observations.

    `geoms` maps a geom's name to the factor of its radius and of its body's mass; inertia stays.
    `actions` has a factor for every action; the control cost sees what the simulator gets.
    `hidden` lists entries of the observation that become 0.
    """

    def __init__(
        self,
        env: Any,
        *,
        gravity: float = 1.0,
        friction: float = 1.0,
        geoms: Mapping[str, float] | None = None,
        actions: Sequence[float] | None = None,
        hidden: Sequence[int] = (),
    ) -> None:
        super().__init__(env)
        model, data = env.unwrapped.model, env.unwrapped.data
        model.opt.gravity[:] *= gravity
        model.geom_friction[:, 0] *= friction  # MuJoCo takes the larger of two touching geoms'
        for name, factor in (geoms or {}).items():
            _scale(model, model.geom(name).id, factor)
        if geoms:
            # The middle phase of collision detection tests boxes from when the model was compiled:
            # it would miss contacts of larger geoms.
            model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
            mujoco.mj_setConst(model, data)  # subtree masses and constraint weights follow
        self._factors = None if actions is None else np.array(actions, np.float32)
        self._hidden = list(hidden)

    def reset(self, **kwargs: Any) -> Any:
        obs, info = self.env.reset(**kwargs)
        return self._shown(obs), info

    def step(self, action: Any) -> Any:
        if self._factors is not None:
            action = action * self._factors
        obs, *rest = self.env.step(action)
        return self._shown(obs), *rest

    def _shown(self, obs: Any) -> Any:
        obs[self._hidden] = 0
        return obs


def _scale(model: Any, geom: int, factor: float) -> None:
    model.body_mass[model.geom_bodyid[geom]] *= factor
    model.geom_size[geom, 0] *= factor
    radius, half_length = model.geom_size[geom, :2]
    capsule = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE
    # Both are computed when a model is compiled; stale ones would miss contacts.
    model.geom_rbound[geom] = radius + (half_length if capsule else 0)
    model.geom_aabb[geom, 3:] = radius
    if capsule:
        model.geom_aabb[geom, 5] = radius + half_length

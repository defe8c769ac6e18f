"""Factors of gravity, friction and masses, and masks."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cwbench import sequences
from cwbench.envs.gymnasium.env import build


@pytest.mark.parametrize("robot", ["cheetah", "ant"])
def test_factors_of_the_scenarios_reach_the_model(robot: str) -> None:
    names = [name for name in sequences.names() if name.startswith(robot)]
    found = {task.name: task for name in names for task in sequences.get(name).definitions}
    assert len(names) == 4 and all(len(sequences.get(name).tasks) == 8 for name in names)
    plain = build(found[f"{robot}-normal"]).unwrapped.model
    moon, huge, rain = (
        build(found[f"{robot}-{name}"]).unwrapped.model for name in ("moon", "hugefoot", "rainfall")
    )
    gravity, friction = (0.15, 0.4) if robot == "cheetah" else (0.7, 0.375)
    assert moon.opt.gravity[2] / plain.opt.gravity[2] == pytest.approx(gravity)
    assert rain.geom_friction[:, 0] == pytest.approx(friction * plain.geom_friction[:, 0])
    assert_array_equal(rain.geom_friction[:, 1:], plain.geom_friction[:, 1:])  # of spin and roll
    changed = np.flatnonzero(huge.body_mass != plain.body_mass)
    assert len(changed) == (2 if robot == "cheetah" else 4)
    assert huge.body_mass[changed] == pytest.approx(1.5 * plain.body_mass[changed])
    assert huge.body_subtreemass[0] == pytest.approx(huge.body_mass.sum())
    geoms = np.flatnonzero(huge.geom_size[:, 0] != plain.geom_size[:, 0])
    assert_array_equal(huge.geom_bodyid[geoms], changed)
    assert huge.geom_rbound[geoms] == pytest.approx(huge.geom_size[geoms, :2].sum(1))


def test_a_larger_torso_touches_the_floor_wherever_it_reaches_it() -> None:
    """In random poses, lying and standing: contacts as those of a model compiled at this size."""
    found = {task.name: task for task in sequences.get("cheetah-forgetting").definitions}
    scaled = build(found["cheetah-carry_stuff"]).unwrapped
    spec = mujoco.MjSpec.from_file(scaled.fullpath)
    [torso] = [geom for geom in spec.worldbody.find_all("geom") if geom.name == "torso"]
    torso.size = [4 * torso.size[0], *torso.size[1:]]
    models = scaled.model, spec.compile()
    for field in ("geom_size", "geom_rbound", "geom_aabb"):
        assert getattr(models[0], field) == pytest.approx(getattr(models[1], field)), field
    low, high = scaled.model.jnt_range[3:].T
    rng, touching = np.random.default_rng(0), 0
    for _ in range(300):
        pose = [0, rng.uniform(-0.5, 0.5), rng.uniform(-np.pi, np.pi), *rng.uniform(low, high)]
        contacts = []
        for model in models:
            data = mujoco.MjData(model)
            data.qpos[:] = pose
            mujoco.mj_forward(model, data)
            contacts.append(sorted(map(tuple, data.contact.geom.tolist())))
        assert contacts[0] == contacts[1]
        touching += (0, scaled.model.geom("torso").id) in contacts[0]
    assert 50 < touching < 250


def test_masks_of_actions_and_observations() -> None:
    found = {task.name: task for task in sequences.get("ant-compositionality").definitions}
    env = build(found["ant-disabled_hard1"])
    env.reset(seed=0)
    env.step(np.full(8, 0.5, np.float32))
    assert env.unwrapped.data.ctrl.tolist() == [0, 0, 0.5, 0.5, 0, 0, 0, 0]
    defective = {t.name: t for t in sequences.get("cheetah-transfer").definitions}
    env = build(defective["cheetah-defective_module"])
    for obs, *_ in (env.reset(seed=0), env.step(np.full(6, 0.5, np.float32))):
        assert np.flatnonzero(obs == 0).tolist() == [2, 6, 7, 9, 11, 13, 14]

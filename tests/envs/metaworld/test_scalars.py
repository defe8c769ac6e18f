"""The helpers on single numbers against Meta-World's and scipy's, on random inputs, with `==`."""

import mujoco
import numpy as np
import pytest
from metaworld.utils import reward_utils
from scipy.spatial.transform import Rotation

from cwbench.envs.metaworld import scalars

CASES = 1000


@pytest.mark.parametrize("curve", ["long_tail", "gaussian"])
def test_tolerance(curve):
    rng = np.random.default_rng(0)
    for _ in range(CASES):
        x, margin = rng.uniform(0, 1), rng.choice([0, rng.uniform(0, 0.6)])
        bounds = tuple(sorted(rng.uniform(0, 0.3, 2)))
        ours = getattr(scalars, curve)(x, *bounds, margin)
        expected = reward_utils.tolerance(x, bounds=bounds, margin=margin, sigmoid=curve)
        assert ours == expected and type(ours) is float
    with pytest.raises(ValueError, match="non-negative"):
        getattr(scalars, curve)(0.5, 0, 0.1, -1)


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
def test_hamacher_product(kind):
    rng = np.random.default_rng(0)
    for a, b in [*rng.uniform(0, 1, (CASES, 2)), (0.0, 0.0), (1.0, 1.0)]:
        ours = scalars.hamacher(float(a), kind(b))
        expected = reward_utils.hamacher_product(float(a), kind(b))
        assert ours == expected and type(ours) is type(expected)
    with pytest.raises(ValueError, match="between 0 and 1"):
        scalars.hamacher(1.1, 0.5)


def test_rect_prism():
    rng, outside = np.random.default_rng(0), 0
    for curr, zero, one in rng.uniform(0, 1, (CASES, 3, 3)):
        ours = scalars.rect_prism(curr, zero, one)
        assert ours == reward_utils.rect_prism_tolerance(curr, zero, one)
        outside += ours == 1
    assert 0 < outside < CASES


def test_norm_and_clip():
    rng = np.random.default_rng(0)
    for vector in rng.normal(size=(CASES, 3)):
        assert scalars.norm(vector) == np.linalg.norm(vector)
        assert type(scalars.norm64(vector[:2])) is type(np.linalg.norm(vector[:2]))
        for x in (vector[0], float(vector[0]), np.float32(vector[0])):
            ours, expected = scalars.clip(x, -0.5, 0.5), np.clip(x, -0.5, 0.5)
            assert ours == expected and type(ours) is type(expected)


def test_quaternion():
    rng, matrix = np.random.default_rng(0), np.empty(9)
    for case in range(CASES):
        rotation = rng.normal(size=4)
        if case % 2:  # nearly upright, as objects are
            rotation = np.array([1, 0, 0, 0]) + 1e-3 * rotation
        mujoco.mju_quat2Mat(matrix, rotation / np.linalg.norm(rotation))
        expected = Rotation.from_matrix(matrix.reshape(3, 3)).as_quat()
        assert (scalars.quaternion(matrix.reshape(3, 3)) == expected).all()

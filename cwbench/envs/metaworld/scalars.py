"""Meta-World's reward helpers on single numbers: the same bits without numpy's small arrays.

Three things must stay as they are, or the last bit differs now and then:

* a norm is `v.dot(v)`: BLAS may fuse multiply and add, `x*x + y*y + z*z` does not;
* a square is `** 2`, not a product;
* `exp` is numpy's, not the C library's.

Types matter, too. A Python float next to the action's float32 gives float32, a numpy float64 gives
float64. Meta-World's `tolerance` returns a Python float, a norm of numpy's a float64.
"""

import math
from typing import Any

import numpy as np

from cwbench.envs.metaworld.env import Vector

# What turns a distance of one margin into a value of 0.1, in each of the two curves.
_GAUSSIAN = float(np.sqrt(-2 * np.log(0.1)))
_LONG_TAIL = float(np.sqrt(1 / 0.1 - 1))
XZ = np.array([0, 2])


def norm(v: Any) -> float:
    """`float(np.linalg.norm(v))` of a vector or a number."""
    if type(v) is not np.ndarray:
        v = float(v)
        return math.sqrt(v * v)
    return math.sqrt(v.dot(v))


def norm64(v: Any) -> np.float64:
    """`np.linalg.norm(v)`, its type included."""
    return np.float64(norm(v))


def _margins(x: float, lower: float, upper: float, margin: float) -> float:
    """How many margins x lies outside the bounds: 0 inside, infinite without a margin."""
    if margin < 0:
        raise ValueError(f"`margin` must be non-negative. Current value: {margin}")
    if lower <= x <= upper:
        return 0.0
    if margin == 0:
        return math.inf
    return float(lower - x if x < lower else x - upper) / float(margin)


def long_tail(x: Any, lower: float, upper: float, margin: float) -> float:
    """`tolerance(x, (lower, upper), margin, "long_tail")`."""
    away = _margins(float(x), lower, upper, margin)
    return 1 / ((away * _LONG_TAIL) ** 2 + 1)


def gaussian(x: Any, lower: float, upper: float, margin: float) -> float:
    """`tolerance(x, (lower, upper), margin, "gaussian")`."""
    away = _margins(float(x), lower, upper, margin)
    return float(np.exp(-0.5 * (away * _GAUSSIAN) ** 2))


def hamacher(a: Any, b: Any) -> Any:
    """`hamacher_product(a, b)`."""
    if not (0.0 <= a <= 1.0 and 0.0 <= b <= 1.0):
        raise ValueError(f"a ({a}) and b ({b}) must range between 0 and 1")
    product = a * b
    denominator = a + b - product
    return product / denominator if denominator > 0 else 0


def rect_prism(curr: Vector, zero: Vector, one: Vector) -> float:
    """`rect_prism_tolerance`: how far from the corner `zero` to the corner `one`; 1 outside."""
    corners = list(zip(curr.tolist(), zero.tolist(), one.tolist(), strict=True))
    if not all(min(z, o) <= c <= max(z, o) for c, z, o in corners):
        return 1.0
    x, y, z = ((c - start) / (end - start) for c, start, end in corners)
    return float(x * y * z)


def clip(x: Any, low: float, high: float) -> Any:
    """`np.clip`, where a float32 stays one and a Python float becomes float64."""
    if type(x) is np.ndarray:
        return np.clip(x, low, high)
    kind = np.float64 if type(x) is float else type(x)
    return kind(low) if x < low else kind(high) if x > high else kind(x)


def hstack(parts: Any) -> Vector:
    """`np.hstack`, faster where the parts are vectors."""
    try:
        return np.concatenate(parts)
    except ValueError:
        return np.hstack(parts)


def quaternion(matrix: Vector) -> Vector:
    """`Rotation.from_matrix(matrix).as_quat()` of a rotation matrix.

    Markley's method in scipy's order of operations, without the test that the matrix is a rotation.
    """
    a, b, c, d, e, f, g, h, i = matrix.ravel().tolist()
    trace = a + e + i
    diagonal = (a, e, i, trace)
    best = diagonal.index(max(diagonal))
    if best == 0:
        x, y, z, w = 1 - trace + 2 * a, d + b, g + c, h - f
    elif best == 1:
        x, y, z, w = b + d, 1 - trace + 2 * e, h + f, c - g
    elif best == 2:
        x, y, z, w = c + g, f + h, 1 - trace + 2 * i, d - b
    else:
        x, y, z, w = h - f, c - g, d - b, 1 + trace
    length = math.sqrt(x * x + y * y + z * z + w * w)
    return np.array((x / length, y / length, z / length, w / length))


# The caging rewards: how well the fingers enclose an object. `sim` is a `lean.Lean`.


def caging(
    sim: Any,
    action: Vector,
    obj_pos: Vector,
    obj_radius: float,
    pad_success_thresh: float,
    object_reach_radius: float,
    xz_thresh: float,
    desired_gripper_effort: float = 1.0,
    high_density: bool = False,
    medium_density: bool = False,
) -> Any:
    """`SawyerXYZEnv._gripper_caging_reward`, with its argument names."""
    start_y, xz_margin, reach_margin = sim.caging_constants(xz_thresh, object_reach_radius)
    y = float(obj_pos[1])
    left, right = (
        long_tail(
            abs(pad - y),
            obj_radius,
            pad_success_thresh,
            abs(abs(pad - start_y) - pad_success_thresh),
        )
        for pad in (float(sim.left_pad[1]), float(sim.right_pad[1]))
    )
    away = sim.tcp - obj_pos
    in_xz = long_tail(norm(away.take(XZ)), 0, xz_thresh, xz_margin)
    caged = hamacher(hamacher(left, right), in_xz)
    closed: Any = 0.0
    if caged > 0.97:
        closed = min(max(0, action[-1]), desired_gripper_effort) / desired_gripper_effort
    both = hamacher(caged, closed)
    if high_density:
        both = (both + caged) / 2
    if medium_density:
        both = (both + long_tail(norm(away), 0, object_reach_radius, reach_margin)) / 2
    return both


def own_caging(
    sim: Any, obj_pos: Vector, obj_radius: float, grip_width: float, xz_margin: float
) -> Any:
    """The one of push-back, soccer, sweep and sweep-into, which differ in two numbers."""
    y = float(obj_pos[1])
    right, right_margin = y - float(sim.right_pad[1]), _pad_margin(y, sim.init_right_pad)
    left, left_margin = float(sim.left_pad[1]) - y, _pad_margin(y, sim.init_left_pad)
    y_caging, y_gripping = (
        hamacher(
            long_tail(right, obj_radius, limit, right_margin),
            long_tail(left, obj_radius, limit, left_margin),
        )
        for limit in (0.05, obj_radius + grip_width)
    )
    caged = hamacher(y_caging, _flat(sim, obj_pos, xz_margin))
    return (caged + (y_gripping if caged > 0.95 else 0.0)) / 2


def pick_place_caging(sim: Any, action: Vector, obj_pos: Vector) -> Any:
    y = float(obj_pos[1])
    left = long_tail(float(sim.left_pad[1]) - y, 0.015, 0.05, _pad_margin(y, sim.init_left_pad))
    right = long_tail(y - float(sim.right_pad[1]), 0.015, 0.05, _pad_margin(y, sim.init_right_pad))
    caged = hamacher(hamacher(left, right), _flat(sim, obj_pos, 0.005))
    both = hamacher(caged, min(max(0, action[3]), 1) if caged > 0.97 else 0.0)
    return (both + caged) / 2


def _pad_margin(y: float, start: Vector) -> float:
    return abs(abs(y - float(start[1])) - 0.05)


def _flat(sim: Any, obj_pos: Vector, xz_margin: float) -> float:
    """How close the fingers are in the xz plane; Meta-World sets y to 0 and keeps three numbers."""
    flat = sim.tcp - obj_pos
    flat[1] = 0.0
    return long_tail(norm(flat), 0, xz_margin, sim.flat_margin(xz_margin))

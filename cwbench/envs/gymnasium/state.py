"""Exact state of a gymnasium environment in the middle of an episode.

MuJoCo environments: the simulator's integration state (the solver's warm start included), body
positions, which `mj_step` leaves one substep behind, and fields of the model that some environments
move at a reset. All environments: plain attributes of the environment and its wrappers, and the
generator. Copying or pickling a MuJoCo environment would silently rebuild it, and a pickle in a
results folder could run anybody's code, so states are JSON.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.envs.mujoco_state import get_state, restore

PLAIN = (bool, int, float, str, bytes, type(None), np.generic)
# Rebuilt with the environment, or saved apart.
SKIPPED = {"env", "model", "data", "mujoco_renderer", "spec", "_np_random", "render_mode"}
MODEL = ("body_pos", "site_pos")
DATA = ("xpos", "xipos")


def save(env: Any) -> NDArray[np.uint8]:
    """As bytes; `load` puts it back into an environment of the same task."""
    bare = env.unwrapped
    content = {
        "layers": [_plain(layer) for layer in _layers(env)],
        "generator": bare.np_random.bit_generator.state,
        "physics": _physics(bare) if is_mujoco(bare) else None,
    }
    return np.frombuffer(json.dumps(_encoded(content)).encode(), np.uint8)


def load(env: Any, saved: NDArray[np.uint8]) -> None:
    content, bare = _decoded(json.loads(saved.tobytes())), env.unwrapped
    for layer, values in zip(_layers(env), content["layers"], strict=True):
        vars(layer).update(values)
    bare.np_random.bit_generator.state = content["generator"]
    if content["physics"] is not None:
        _set_physics(bare, content["physics"])


def _encoded(value: Any) -> Any:
    """For JSON: a list of a kind and its content stands for what JSON does not have."""
    match value:
        case np.ndarray() | np.generic():
            data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return ["array", np.asarray(value).dtype.str, list(np.shape(value)), data]
        case bytes():
            return ["bytes", base64.b64encode(value).decode()]
        case tuple() | list():
            return [type(value).__name__, [_encoded(item) for item in value]]
        case dict():
            return ["dict", [[_encoded(key), _encoded(item)] for key, item in value.items()]]
    return value


def _decoded(value: Any) -> Any:
    match value:
        case ["array", dtype, shape, data]:
            array = np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
            return array if shape else array[()]
        case ["bytes", data]:
            return base64.b64decode(data)
        case ["tuple", items]:
            return tuple(map(_decoded, items))
        case ["list", items]:
            return list(map(_decoded, items))
        case ["dict", items]:
            return {_decoded(key): _decoded(item) for key, item in items}
    return value


def is_mujoco(bare: Any) -> bool:
    names = {type(getattr(bare, name, None)).__name__ for name in ("model", "data")}
    return names == {"MjModel", "MjData"}


def _layers(env: Any) -> Iterator[Any]:
    """The environment and its wrappers, outermost first."""
    while env is not env.unwrapped:
        yield env
        env = env.env
    yield env


def _plain(layer: Any) -> dict[str, Any]:
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in vars(layer).items()
        if name not in SKIPPED and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, PLAIN) or (isinstance(value, np.ndarray) and value.dtype != object)


def _physics(bare: Any) -> dict[str, Any]:
    return {
        "state": get_state(bare),
        "gravity": bare.model.opt.gravity.copy(),
        "model": {name: getattr(bare.model, name).copy() for name in MODEL},
        "data": {name: getattr(bare.data, name).copy() for name in DATA},
    }


def _set_physics(bare: Any, saved: dict[str, Any]) -> None:
    import mujoco

    model, data = bare.model, bare.data
    model.opt.gravity[:] = saved["gravity"]
    for name, values in saved["model"].items():
        getattr(model, name)[:] = values
    mujoco.mj_resetData(model, data)
    restore(bare, saved["state"])
    for name, values in saved["data"].items():
        getattr(data, name)[:] = values

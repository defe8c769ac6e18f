"""States of environments as JSON: nothing in a results folder is unpickled."""

import json
from typing import Any

import numpy as np
import pytest

from cwbench.envs.gymnasium.state import _decoded, _encoded

VALUES = [
    None,
    True,
    2**127 + 1,  # generators count in 128 bits
    0.1,
    float("inf"),
    "text",
    b"\x00\xff",
    (1, [2, (3.5,)]),
    {"a": {0: "number as key"}, ("b", 1): []},
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_survive_json(value: Any) -> None:
    back = _decoded(json.loads(json.dumps(_encoded(value))))
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype=np.int32).reshape(2, 3), np.float32(0.1), np.array([np.nan, 1e-300])],
)
def test_arrays_survive_json_bit_for_bit(array: Any) -> None:
    back = _decoded(json.loads(json.dumps(_encoded(array))))
    assert type(back) is type(array) and back.dtype == array.dtype
    assert back.tobytes() == array.tobytes() and back.shape == array.shape


def test_decoded_arrays_can_be_changed() -> None:
    back = _decoded(_encoded(np.zeros(3)))
    back += 1
    assert back.tolist() == [1, 1, 1]


def test_an_object_has_no_json_form() -> None:
    with pytest.raises(TypeError):
        json.dumps(_encoded({"x": object()}))

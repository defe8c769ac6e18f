"""The state of a MuJoCo simulation, of anything that has `model` and `data`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def get_state(sim: Any) -> NDArray[Any]:
    """All that the next simulator step depends on, the solver's warm start included."""
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(sim.model, kind))
    mujoco.mj_getState(sim.model, sim.data, state, kind)
    return state


def set_state(sim: Any, state: NDArray[Any]) -> None:
    import mujoco

    mujoco.mj_setState(sim.model, sim.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)


def restore(sim: Any, state: NDArray[Any]) -> None:
    """Set the state and compute what follows from it."""
    import mujoco

    set_state(sim, state)
    mujoco.mj_forward(sim.model, sim.data)
    set_state(sim, state)  # `mj_forward` has moved the solver's warm start

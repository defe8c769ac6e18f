"""Simulations that became unstable.

MuJoCo resets a simulation with a position, velocity or acceleration that is huge or not finite. It
prints that and appends it to MUJOCO_LOG.TXT in the working folder; here it is counted instead.
"""

import sys
from typing import Any


def silence() -> None:
    """Leave such resets unprinted and out of the log in this process, if it uses MuJoCo."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is not None and mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_pass_on)


def _pass_on(message: str) -> None:
    if "simulation is unstable" not in message:
        print(f"MuJoCo: {message}", file=sys.stderr, flush=True)


def resets(data: Any) -> list[Any]:
    """Live counters of MuJoCo's resets of this simulation since the episode began."""
    from mujoco import mjtWarning

    kinds = (mjtWarning.mjWARN_BADQPOS, mjtWarning.mjWARN_BADQVEL, mjtWarning.mjWARN_BADQACC)
    return [data.warning[kind] for kind in kinds]


def was_reset(data: Any) -> bool:
    """Whether MuJoCo has reset this simulation since the episode began."""
    return any(counter.number for counter in resets(data))

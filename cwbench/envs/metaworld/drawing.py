"""Drawing Meta-World with an off-screen camera."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from cwbench.envs.suite import Frame
from cwbench.spec.errors import UserError

# Nearer than Meta-World's own cameras.
LOOK_AT, DISTANCE, AZIMUTH, ELEVATION = (0, 0.65, 0.15), 1.6, 130, -25  # metres, degrees
PROBE = "import mujoco; mujoco.GLContext(8, 8).make_current()"


def choose_backend() -> None:
    """To be called before MuJoCo is imported, which reads the choice then."""
    os.environ["MUJOCO_GL"] = backend()


def renderer(sim: Any, size: tuple[int, int]) -> tuple[Callable[[], Frame], Callable[[], None]]:
    """A function that draws a simulation, [H, W, 3], and one that ends the drawing."""
    import mujoco

    model, data = sim.model, sim.data
    width, height = size
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    # Shadows and smooth edges would take most of the time where no GPU draws.
    model.vis.quality.shadowsize, model.vis.quality.offsamples = 0, 0
    made = mujoco.Renderer(model, height, width)

    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance = LOOK_AT, DISTANCE
    camera.azimuth, camera.elevation = AZIMUTH, ELEVATION

    def draw() -> Frame:
        made.update_scene(data, camera)
        frame: Frame = made.render().copy()
        return frame

    return draw, made.close


@cache
def backend() -> str:
    """The first way of drawing without a screen that works here: EGL, else OSMesa."""
    chosen = os.environ.get("MUJOCO_GL")
    candidates = [chosen] if chosen else ["egl", "osmesa"] if sys.platform == "linux" else ["glfw"]
    for name in candidates:
        environment = {**os.environ, "MUJOCO_GL": name}
        if not subprocess.run(
            [sys.executable, "-c", PROBE], env=environment, capture_output=True
        ).returncode:
            return name
    raise UserError(
        f"MuJoCo cannot render without a display (tried {', '.join(candidates)})",
        "install EGL (a GPU's driver and libegl1) or OSMesa (apt-get install libosmesa6)",
    )

"""Drawing Meta-World: stock models, which have the visual geoms, and an off-screen camera."""

import os
import subprocess
import sys
from functools import cache

from cwbench.envs.metaworld.env import MetaWorldEnv
from cwbench.envs.suite import Drawable, Frame
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.errors import UserError

# Nearer than Meta-World's own cameras.
LOOK_AT, DISTANCE, AZIMUTH, ELEVATION = (0, 0.65, 0.15), 1.6, 130, -25  # metres, degrees
PROBE = "import mujoco; mujoco.GLContext(8, 8).make_current()"


def drawable(task: str, config: MetaWorldConfig, size: tuple[int, int]) -> Drawable:
    """The environment and a function that draws it: [H, W, 3]."""
    os.environ["MUJOCO_GL"] = backend()  # read when MuJoCo is imported
    import mujoco

    from cwbench.envs.metaworld import stock

    env: MetaWorldEnv = stock.make(task, config)
    model, data = env.sim.model, env.sim.data
    width, height = size
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    # Shadows and smooth edges would take most of the time where no GPU draws.
    model.vis.quality.shadowsize, model.vis.quality.offsamples = 0, 0
    renderer = mujoco.Renderer(model, height, width)

    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance = LOOK_AT, DISTANCE
    camera.azimuth, camera.elevation = AZIMUTH, ELEVATION

    def draw() -> Frame:
        renderer.update_scene(data, camera)
        frame: Frame = renderer.render().copy()
        return frame

    return Drawable(env, draw, renderer.close)


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

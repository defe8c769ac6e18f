"""Drawing Meta-World: what is drawn is the environment that trains."""

import subprocess
import sys

import numpy as np
import pytest

from cwbench.envs.metaworld import make
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS


@pytest.mark.parametrize("task", CW_TASKS)
def test_a_model_with_visual_parts_makes_the_same_episode(task: str) -> None:
    config = MetaWorldConfig(obs="full39")
    trained, drawn = make(task, config), make(task, config, visual=True)
    assert drawn.sim.model.ngeom > trained.sim.model.ngeom
    first, second = (env.reset(np.random.default_rng(0)) for env in (trained, drawn))
    assert (first == second).all()
    for action in np.random.default_rng(1).uniform(-1, 1, (5, 4)).astype(np.float32):
        one, other = trained.step(action), drawn.step(action)
        assert (one[0] == other[0]).all() and one[1:] == other[1:]


DRAW = """
import numpy as np
from cwbench import envs
from cwbench.spec.config import MetaWorldConfig

shown = envs.drawable("window-close", MetaWorldConfig(), (64, 48))
first = shown.env.reset(np.random.default_rng(0))
before = shown.draw()
assert before.std() > 20
trained = envs.make("window-close", MetaWorldConfig())
assert (first == trained.reset(np.random.default_rng(0))).all()
shown.env.step(np.zeros(4, np.float32))
# The window is open in both: Meta-World's own reset would draw it closed.
assert np.abs(shown.draw().astype(int) - before).mean() < 1
shown.close()
"""


def test_what_is_drawn_without_a_screen_is_what_trains() -> None:
    """In a process of its own: MuJoCo reads how to draw when it is imported."""
    done = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True)
    if "cannot render without a display" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr

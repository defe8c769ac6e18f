"""Any gymnasium environment with box observations and box actions, as a suite."""

from collections.abc import Sequence
from dataclasses import replace

from cwbench.envs.suite import Drawable, Env, Suite
from cwbench.spec.config import GymnasiumConfig
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Task


def make(task: str, config: GymnasiumConfig) -> Env:
    from cwbench.envs.gymnasium.env import GymnasiumEnv

    [definition] = [one for one in config.tasks if one.name == task]
    return GymnasiumEnv(definition, (config.obs_size, config.action_size))


def sizes(config: GymnasiumConfig) -> tuple[int, int]:
    return config.obs_size, config.action_size


def configure(config: GymnasiumConfig, tasks: Sequence[Task]) -> GymnasiumConfig:
    """Makes every environment once, to learn sizes, time limits and how it can be resumed."""
    from cwbench.envs.gymnasium.probe import inspected

    found = tuple(inspected(task) for task in tasks)
    return replace(
        config,
        tasks=found,
        horizon=max(task.horizon or 0 for task in found),
        obs_size=max(task.obs_size for task in found),
        action_size=max(task.action_size for task in found),
    )


def drawable(task: str, config: GymnasiumConfig, size: tuple[int, int]) -> Drawable:
    from cwbench.envs.gymnasium.env import GymnasiumEnv

    [definition] = [one for one in config.tasks if one.name == task]
    plain = GymnasiumEnv(definition, (config.obs_size, config.action_size)).env
    plain.close()
    if "rgb_array" not in (plain.metadata.get("render_modes") or ()):
        hint = "its environment has no render mode rgb_array"
        raise UserError(f"task {task} cannot be rendered", hint)
    drawn = replace(definition, kwargs={**definition.kwargs, "render_mode": "rgb_array"})
    env = GymnasiumEnv(drawn, (config.obs_size, config.action_size))
    return Drawable(env, env.draw, env.env.close)


SUITE = Suite(GymnasiumConfig, make, sizes, configure=configure, terminates=True, drawable=drawable)

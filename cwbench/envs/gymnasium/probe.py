"""What a task's environment says about itself, and whether it can be used at all."""

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.envs.gymnasium.env import GymnasiumEnv, build
from cwbench.envs.suite import State
from cwbench.spec.errors import UserError
from cwbench.spec.segment import digest
from cwbench.spec.tasks import Score, Task

# Steps after which a state is saved, to see whether it continues: steps compared after it.
SAVED_AT = {3: 50, 50: 300}
USED_STEPS = 100  # before an episode that must begin as in a new instance
COMPARED_STEPS = 10  # of that episode
_TRIED: dict[str, bool] = {}  # tasks of this process -> whether they resume exactly
WRAPPING = {
    "observation": "wrap it, for instance with gymnasium's FlattenObservation",
    "action": "choose an environment with continuous actions, or wrap it",
}


def inspected(task: Task) -> Task:
    """The task with its sizes, time limit and way to be resumed; UserError if it cannot be used."""
    env = build(task)
    obs, action = (_size(task, env, name) for name in ("observation", "action"))
    limit = task.horizon or _time_limit(env)
    if limit is None:
        raise UserError(f"task {task.name} has no time limit", "give it a `horizon`")
    known = replace(task, obs_size=obs, action_size=action, horizon=limit, resume="exact")
    _begins_afresh(known)
    key = digest(known.record())
    if key not in _TRIED:
        _TRIED[key] = _resumes(known)
    return replace(known, resume="exact" if _TRIED[key] else "episode")


def _size(task: Task, env: Any, kind: str) -> int:
    import gymnasium

    space = getattr(env, f"{kind}_space", None)
    if not isinstance(space, gymnasium.spaces.Box):
        raise UserError(
            f"task {task.name}: its {kind} space is {type(space).__name__}, not Box",
            WRAPPING[kind],
        )
    if kind == "action" and not np.issubdtype(space.dtype, np.floating):
        raise UserError(
            f"task {task.name}: its actions are of type {space.dtype}, not float", WRAPPING[kind]
        )
    bounded = len(space.shape) == 1 and bool(np.isfinite([space.low, space.high]).all())
    if kind == "action" and not bounded:
        raise UserError(
            f"task {task.name}: its actions are not a vector with finite bounds",
            "wrap it, for instance with gymnasium's TransformAction",
        )
    return int(np.prod(space.shape))


def _time_limit(env: Any) -> int | None:
    spec = getattr(env, "spec", None)
    return None if spec is None else _positive(_registered_limit(spec))


def _registered_limit(spec: Any) -> int | None:
    """The limit of the registered id: that of this instance was removed when it was made."""
    import gymnasium

    entry = gymnasium.registry.get(spec.id, spec)
    limit: int | None = entry.max_episode_steps
    return limit


def _positive(limit: int | None) -> int | None:
    return limit if limit is not None and limit > 0 else None


def _begins_afresh(task: Task) -> None:
    """UserError if an episode depends on those before it.

    A warning if none tells success, or if the seed does not determine an episode.

    Workers reuse environments, so what one remembers would depend on the number of workers.
    """
    used = _instance(task)
    used.reset(np.random.default_rng(0))
    for action in _random_actions(task, USED_STEPS):
        _step(used, action)
    if task.score == Score() and not used.told_success:
        warnings.warn(
            f'task {task.name}: {USED_STEPS} steps have no info["success"] or info["is_success"], '
            "and an episode without either counts as not solved; `score` gives other rules",
            stacklevel=1,  # one place, so that Python shows it once
        )
    first = _beginning(_instance(task))
    if _close(first, _beginning(used)):
        return
    others = (_beginning(_instance(task)) for _ in range(5))
    if all(_close(first, other) for other in others):
        raise UserError(
            f"task {task.name} keeps state between episodes: the same seed begins another episode "
            "after a first one",
            "`reset` must forget everything; leave out wrappers such as NormalizeObservation",
        )
    warnings.warn(
        f"task {task.name}: the same seed begins different episodes, so runs cannot be reproduced; "
        "draw from `self.np_random`, which `super().reset(seed=seed)` seeds",
        stacklevel=1,
    )


def _instance(task: Task) -> GymnasiumEnv:
    return GymnasiumEnv(task, (task.obs_size, task.action_size))


def _random_actions(task: Task, steps: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(-1, 1, (steps, task.action_size)).astype(np.float32)


def _beginning(env: GymnasiumEnv) -> NDArray[Any]:
    """The numbers of an episode's first steps, with the same seed and actions each time."""
    shown = [env.reset(np.random.default_rng(2))]
    for action in _random_actions(env.task, COMPARED_STEPS):
        obs, *others = _step(env, action)
        shown.append(np.append(obs, others))
    return np.concatenate(shown)


def _close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Up to rounding: a simulator may add in another order after its first episode."""
    return np.allclose(one, other, rtol=1e-4, atol=1e-5)


def _resumes(task: Task) -> bool:
    """Whether states saved in an episode continue bit for bit in other instances.

    Always as many steps, even if they are slow: the answer is part of a segment's id.
    """
    env = _instance(task)
    env.reset(np.random.default_rng(0))
    actions = _random_actions(task, max(at + steps for at, steps in SAVED_AT.items()))
    saved: dict[int, State] = {}
    made = []
    for number, action in enumerate(actions):
        if number in SAVED_AT:
            with suppress(Exception):  # a state that cannot be written
                saved[number] = env.save()
        made.append(_step(env, action))
    return all(
        _continues(_instance(task), saved.get(at, {}), actions[at:][:steps], made[at:])
        for at, steps in SAVED_AT.items()
    )


def _continues(env: GymnasiumEnv, saved: State, actions: Any, expected: list[Any]) -> bool:
    try:
        env.load(saved)
        for action, (obs, *others) in zip(actions, expected, strict=False):
            again, *other = _step(env, action)
            if others != other or not np.array_equal(obs, again):
                return False
    except Exception:  # whatever an environment raises that was restored in part
        return False
    return True


def _step(env: GymnasiumEnv, action: Any) -> tuple[Any, ...]:
    """One step; a new episode when one has ended."""
    made = env.step(action)
    if made[3] or made[4]:
        made = (env.reset(np.random.default_rng(1)), *made[1:])
    return made

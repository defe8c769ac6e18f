"""What a plan will need: counted steps, modelled memory, and time from a short measurement."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch

from cwbench.config import EnvConfig
from cwbench.method import Method
from cwbench.nets import make_critic, make_policy
from cwbench.plan import Plan
from cwbench.replay import Replay
from cwbench.schedule import count_evaluations, count_updates, longest_share
from cwbench.segment import Segment
from cwbench.trainer import Trainer

ACTION_DIM = 4
PROCESS_BYTES = 450 << 20  # a process with torch loaded
WORKER_BYTES = 120 << 20  # a process with numpy and the simulator loaded
ENV_BYTES = 6 << 20  # one environment on a slim model


@dataclass(frozen=True)
class Estimate:
    steps: int  # environment steps of training
    eval_steps: int
    updates: int
    host_bytes: int  # largest at any time
    device_bytes: int  # 0 without an accelerator
    disk_bytes: int
    seconds: float | None  # None when nothing was measured


def parameter_counts(segment: Segment, obs_dim: int) -> tuple[int, int]:
    """Parameters of the actor and of both critics, all heads included."""
    network, tasks = segment.setup.network, len(segment.tasks)
    shape = (obs_dim, ACTION_DIM, network.width, network.layers)
    actor = make_policy(*shape, network.actor_head_layers).network
    critic = make_critic(*shape, network.critic_head_layers)
    return tuple(sum(prod(s) for s in net.shapes(tasks).values()) for net in (actor, critic))  # type: ignore[return-value]


def row_bytes(obs_dim: int) -> int:
    return 4 * (2 * obs_dim + ACTION_DIM + 1)


def replay_bytes(segments: Sequence[Segment], method: Method[Any], obs_dim: int) -> int:
    """Transitions in memory for a fleet: each run's own, and each distinct ancestor's once."""
    first, size = segments[0], segments[0].setup.sac.buffer_size
    lanes = method.lanes(first.position)
    horizon = first.setup.env.horizon
    share = max(longest_share(first.steps, len(lane), horizon) for lane in lanes)
    live = {position for lane in lanes for position in lane}
    own = len(segments) * len(live) * min(size, share) * row_bytes(obs_dim)
    ancestors = set()
    if method.keeps_data:
        for segment in segments:
            parent = segment.parent
            while parent is not None:
                if parent.position not in live:
                    ancestors.add(parent.id)
                parent = parent.parent
    return own + len(ancestors) * kept_bytes(first, method, obs_dim)


def kept_bytes(segment: Segment, method: Method[Any], obs_dim: int) -> int:
    """What a finished task leaves for later ones."""
    rows = min(segment.setup.sac.buffer_size, segment.steps)
    return rows * (row_bytes(obs_dim) + 4 * method.note_width)


def fleet_bytes(segments: Sequence[Segment], method: Method[Any], obs_dim: int) -> int:
    """Tensors of a fleet: weights, gradients and Adam's two moments, targets, replay."""
    actor, critic = parameter_counts(segments[0], obs_dim)
    tensors = 4 * (4 * (actor + critic) + critic)
    return len(segments) * tensors + replay_bytes(segments, method, obs_dim)


def estimate(
    plan: Plan,
    methods: Mapping[str, type[Method[Any]]],
    obs_dim: Callable[[EnvConfig], int],
    device: torch.device,
    workers: int,
    *,
    measure: bool,
) -> Estimate:
    steps = updates = evals = disk = largest = 0
    seconds = 0.0
    speed: dict[tuple[Any, ...], tuple[float, float]] = {}
    for fleet in plan.fleets:
        first, runs = fleet[0], len(fleet)
        schedule, width = first.setup.schedule, obs_dim(first.setup.env)
        kind = methods[first.setup.method]
        method = kind(first.setup.options, _bare_trainer(fleet, width, torch.device("cpu")))
        lanes = len(method.lanes(first.position))
        fleet_updates = count_updates(schedule, first.steps)
        episodes = count_evaluations(schedule, first.steps) * schedule.eval_episodes
        fleet_evals = episodes * first.setup.env.horizon * len(first.tasks)
        steps += runs * first.steps
        updates += runs * fleet_updates
        evals += runs * fleet_evals
        largest = max(largest, fleet_bytes(fleet, method, width))
        kept = kept_bytes(first, method, width) if method.keeps_data else 0
        actor, critic = parameter_counts(first, width)
        disk += runs * (4 * (actor + 2 * critic) + kept)
        if measure:
            key = (first.setup, len(first.tasks) > 1, runs)
            if key not in speed:
                speed[key] = _measure(fleet, width, device)
            per_update, per_step = speed[key]
            seconds += fleet_updates * per_update
            stepped = runs * (lanes * first.steps + fleet_evals)
            seconds += stepped * per_step / min(workers, runs * lanes)
    # A worker keeps the environments of every task it has evaluated; repeated tasks share them.
    tasks = max((len(set(segment.tasks)) for fleet in plan.fleets for segment in fleet), default=0)
    episodes = max((f[0].setup.schedule.eval_episodes for f in plan.fleets), default=0)
    host = PROCESS_BYTES + workers * (WORKER_BYTES + ENV_BYTES * (episodes * tasks + 1))
    on_device = device.type == "cuda"
    return Estimate(
        steps,
        evals,
        updates,
        host + (0 if on_device else largest),
        largest if on_device else 0,
        disk,
        seconds if measure else None,
    )


def _measure(fleet: Sequence[Segment], obs_dim: int, device: torch.device) -> tuple[float, float]:
    """Seconds per update of a fleet like this one, and per environment step of one worker."""
    trainer = example_trainer(fleet, obs_dim, device)
    return seconds_per_call(partial(trainer.train, 1), 0.7), seconds_per_call(
        _stepper(fleet[0]), 0.2
    )


def _bare_trainer(
    fleet: Sequence[Segment], obs_dim: int, device: torch.device, *, compiled: bool = False
) -> Trainer:
    """A trainer as this fleet will have it, before it starts."""
    setup = fleet[0].setup
    return Trainer(
        [segment.seed for segment in fleet],
        fleet[0].position,
        dims=(obs_dim, ACTION_DIM),
        sac=setup.sac,
        network=setup.network,
        schedule=setup.schedule,
        device=device,
        length=fleet[0].length,
        compiled=compiled,
    )


def example_trainer(
    fleet: Sequence[Segment], obs_dim: int, device: torch.device, *, compiled: bool = False
) -> Trainer:
    """The same, with made-up transitions and ready to train."""
    setup, position = fleet[0].setup, fleet[0].position
    trainer = _bare_trainer(fleet, obs_dim, device, compiled=compiled)
    trainer.start()
    # The plain update: what a method adds to it depends on earlier tasks, which are not there yet.
    trainer.method = Method(setup.options, trainer)
    trainer.replay = Replay(len(fleet), 1000, trainer.dims, trainer.streams, live=[position])
    rows = torch.zeros(len(fleet), 1000, trainer.replay.width)
    trainer.replay.add(position, rows)
    return trainer


def pick_threads(plan: Plan, obs_dim: Callable[[EnvConfig], int], device: torch.device) -> int:
    """One thread or all, whichever is faster for the largest fleet; numbers do not depend on it."""
    if device.type != "cpu" or cores() == 1:
        return 1
    fleet = max(plan.fleets, key=len)
    seconds = {}
    for threads in (1, cores()):
        torch.set_num_threads(threads)
        trainer = example_trainer(fleet, obs_dim(fleet[0].setup.env), device)
        seconds[threads] = seconds_per_call(partial(trainer.train, 1), 0.3)
    return min(seconds, key=lambda threads: seconds[threads])


def _stepper(segment: Segment) -> Callable[[], None]:
    from cwbench import envs

    env = envs.make(segment.tasks[-1], segment.setup.env)
    rng = np.random.default_rng(0)
    env.reset(rng)
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        if env.step(rng.uniform(-1, 1, ACTION_DIM).astype(np.float32))[3]:
            env.reset(rng)

    return step


def seconds_per_call(action: Callable[[], None], budget: float) -> float:
    """Seconds per call, after a warm-up call, for about as long as the budget says."""
    action()
    start, calls = time.perf_counter(), 0
    while calls < 3 or time.perf_counter() - start < budget:
        action()
        calls += 1
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def size(count: int) -> str:
    """Bytes for people: 512 B, 3.4 MiB, 12 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def cores() -> int:
    """Cores this process may use, which in a container or job may be fewer than there are.

    Launchers that start several processes on a machine name each one's share.
    """
    if share := os.environ.get("CWBENCH_CORES"):
        return int(share)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

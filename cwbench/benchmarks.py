"""What `cwbench bench` measures of the trainer."""

import tempfile
from pathlib import Path
from typing import Any

import torch

from cwbench import envs
from cwbench.config import EnvConfig, MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.estimate import example_trainer, seconds_per_call
from cwbench.method import Method
from cwbench.plan import Run, make_plan
from cwbench.pool import Pool
from cwbench.results import Store
from cwbench.runner import Runner
from cwbench.segment import Segment, Setup, path
from cwbench.timeline import Span, Timeline

CHUNK = 50  # updates between two looks at the clock
WARM_STEPS = 600  # before a fleet's clock starts: capture and compilation are over


def update_speed(
    runs: int, device: torch.device, batch_size: int, *, compiled: bool, seconds: float
) -> float:
    """Updates per second of a fleet of plain SAC with the published networks."""
    sac = SACConfig(batch_size=batch_size)
    groups = (MethodConfig(), sac, NetworkConfig(), EnvConfig(), ScheduleConfig())
    setup = Setup("finetuning", *groups)
    fleet = [Segment(setup, seed, ("push",)) for seed in range(runs)]
    trainer = example_trainer(fleet, 12, device, compiled=compiled)
    chunk = CHUNK if device.type == "cuda" else 1
    return chunk / seconds_per_call(lambda: trainer.train(chunk), seconds)


def fleet_speed(
    setup: Setup,
    method: type[Method[Any]],
    runs: int,
    length: int,
    device: torch.device,
    workers: int,
    *,
    compiled: bool,
) -> tuple[dict[str, float], list[Span]]:
    """Train so many runs on different tasks; what their last task was like (see `Timeline`)."""
    count = len(envs.TASKS)
    wanted = []
    for number in range(runs):
        tasks = [envs.TASKS[(number + place * (1 + number // count)) % count] for place in range(2)]
        segments = path(
            setup,
            number // count**length,
            tuple(tasks[-length:]),
            needs_length=method.needs_length,
            joint=method.joint,
        )
        wanted.append(Run("bench", tuple(tasks[-length:]), setup.method, "", tuple(segments)))
    cuda = device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder, Pool(workers, envs.ACTION_DIM) as pool:
        store = Store(Path(folder))
        runner = Runner(
            store,
            {setup.method: method},
            device,
            envs.obs_dim,
            halves=2 if cuda else 1,
            compiled=compiled,
            snapshot_seconds=float("inf"),
            about=lambda segment: {},
        )
        timeline = Timeline(pool, length - 1, WARM_STEPS)
        outcome = runner.run(make_plan(wanted, store, runs, lambda segment: 0), pool, timeline)
        if outcome.failed:
            raise RuntimeError(next(iter(outcome.failed.values())))
        return timeline.summary(), timeline.spans()

"""What `cwbench bench` measures of the trainer."""

import torch

from cwbench.config import EnvConfig, MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.estimate import example_trainer, seconds_per_call
from cwbench.segment import Segment, Setup

CHUNK = 50  # updates between two looks at the clock


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

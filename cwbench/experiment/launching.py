"""The launcher that the options describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cwbench.experiment.execution import Launching
from cwbench.spec.errors import UserError

if TYPE_CHECKING:
    import torch

    from cwbench.launch import Launcher


def make_launcher(launching: Launching, results: Path, device: torch.device) -> Launcher | None:
    """None for training in this process, the plain case."""
    gpu = device.type == "cuda"
    if launching.launcher == "print":
        from cwbench.launch.printed import Printed

        return Printed()
    if launching.launcher == "ray":
        from cwbench.launch.ray import Ray

        return Ray(launching.ray_address, gpu=gpu, cpus=launching.cpus_per_fleet)
    if launching.launcher == "slurm":
        return _slurm(launching, results, gpu)
    return _local(gpu, launching.fleets_per_gpu)


def _local(gpu: bool, fleets_per_gpu: int) -> Launcher | None:
    import torch

    if not gpu and fleets_per_gpu > 1:
        raise UserError("--fleets-per-gpu is for GPUs", "on a CPU one process uses all cores")
    if not gpu or torch.cuda.device_count() * fleets_per_gpu < 2:
        return None
    from cwbench.launch.local import Local, visible_devices
    from cwbench.planning.estimate import cores

    return Local(fleets_per_gpu * visible_devices(torch.cuda.device_count()), cores())


def _slurm(launching: Launching, results: Path, gpu: bool) -> Launcher:
    from cwbench.launch.slurm import Slurm

    further = {}
    for text in launching.slurm_set:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UserError(f"--slurm-set {text}: no value", "write NAME=VALUE")
        further[name] = value
    named = {"partition": launching.slurm_partition, "mem": launching.slurm_mem}
    return Slurm(
        results.resolve() / "jobs" / "slurm",
        gpu=gpu,
        cpus=launching.cpus_per_fleet or 8,
        minutes=launching.slurm_time,
        parameters={name: value for name, value in named.items() if value is not None},
        further=further,
        signal_seconds=launching.slurm_signal,
    )

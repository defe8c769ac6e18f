"""The launcher that the options describe, and how other processes find the methods."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from cwbench.experiment.execution import SLURM_CORES, Launching
from cwbench.spec.errors import UserError, located
from cwbench.spec.extras import check_extra
from cwbench.spec.options import flag_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

    from cwbench.experiment.build import Methods
    from cwbench.launch import Launcher


# Options that only some launchers use.
USED_BY = {
    "fleets_per_gpu": ("local",),
    "ray_address": ("ray",),
    "cpus_per_fleet": ("ray", "slurm"),
    "slurm_partition": ("slurm",),
    "slurm_time": ("slurm",),
    "slurm_mem": ("slurm",),
    "slurm_signal": ("slurm",),
    "slurm_set": ("slurm",),
}
PACKAGES = {"ray": "ray", "slurm": "submitit"}


def check_launching(launching: Launching) -> None:
    """UserError for an option that would be ignored, or that has no value."""
    default = Launching()
    given = [name for name in USED_BY if getattr(launching, name) != getattr(default, name)]
    check_used(launching.launcher, given)
    for text in launching.slurm_set:
        if not all(text.partition("=")):
            raise UserError(f"--slurm-set {text}: no value", "write NAME=VALUE")


def check_installed(launcher: str) -> None:
    """UserError without the package that a launcher needs: known before anything is measured."""
    if launcher in PACKAGES:
        with located(f"--launcher {launcher}"):
            check_extra(PACKAGES[launcher], f"cwbench[{launcher}]")


def check_used(launcher: str, given: Iterable[str]) -> None:
    """UserError for an option that this launcher would ignore."""
    for name in given:
        if launcher not in USED_BY[name]:
            raise UserError(
                f"--{flag_name(name)} has no effect with --launcher {launcher}",
                f"it is for {' and '.join(USED_BY[name])}",
            )


def make_launcher(launching: Launching, results: Path, device: torch.device) -> Launcher | None:
    """None for training in this process, the plain case."""
    import torch

    gpu = device.type == "cuda"
    if launching.launcher == "print":
        from cwbench.launch.printed import Printed

        return Printed()
    if launching.launcher == "ray":
        from cwbench.launch.ray import Ray

        devices = max(1, torch.cuda.device_count()) if gpu else 1
        return Ray(launching.ray_address, gpu=gpu, cpus=launching.cpus_per_fleet, devices=devices)
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
    from cwbench.planning.machine import cores

    return Local(fleets_per_gpu * visible_devices(torch.cuda.device_count()), cores())


def _slurm(launching: Launching, results: Path, gpu: bool) -> Launcher:
    from cwbench.launch.slurm import Slurm

    further = dict(text.split("=", 1) for text in launching.slurm_set)
    named = {"partition": launching.slurm_partition, "mem": launching.slurm_mem}
    return Slurm(
        results.resolve() / "jobs" / "slurm",
        gpu=gpu,
        cpus=launching.cpus_per_fleet or SLURM_CORES,
        minutes=launching.slurm_time,
        parameters={name: value for name, value in named.items() if value is not None},
        further=further,
        signal_seconds=launching.slurm_signal,
    )


def method_names(methods: Methods) -> dict[str, str]:
    """Recorded name -> a name under which another process finds the method."""
    from cwbench.methods import known

    names = known()
    return {
        name: name
        if name in names
        else f"{Path(inspect.getfile(method)).resolve()}:{method.__name__}"
        for name, method in methods.items()
    }

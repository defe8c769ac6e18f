"""Where to train: the options of `--launcher`, and the launcher they describe."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True)
class Launching:
    launcher: str
    per_device: int
    ray_address: str | None
    job_cpus: int | None
    slurm_partition: str | None
    slurm_time: int
    slurm_mem: str | None
    slurm_signal: int
    slurm_set: tuple[str, ...]

    @staticmethod
    def take(given: dict[str, Any]) -> "Launching":
        return Launching(**{field.name: given.pop(field.name) for field in fields(Launching)})

    @property
    def here(self) -> bool:
        """Whether it trains on this machine for certain, so that measuring here says something."""
        return self.launcher in ("local", "none") or (
            self.launcher == "ray" and self.ray_address is None
        )

    @property
    def waits(self) -> bool:
        """Whether training has ended when the command has."""
        return self.launcher in ("local", "ray")


# In this process, whatever else the machine has: what a launcher has started launches nothing.
HERE = Launching("none", 1, None, None, None, 0, None, 0, ())

OPTIONS = (
    click.option(
        "--launcher", default="local", show_default=True,
        type=click.Choice(["local", "ray", "slurm", "print"]),
        help="Where to train: here, on a Ray or Slurm cluster, or print the commands.",
    ),
    click.option(
        "--per-device", default=1, show_default=True, type=click.IntRange(1), metavar="N",
        help="Small fleets that train side by side on a GPU of this machine, best under CUDA MPS.",
    ),
    click.option(
        "--ray-address", metavar="ADDRESS",
        help="auto or HOST:PORT of a Ray cluster.  [default: start one here]",
    ),
    click.option(
        "--job-cpus", type=click.IntRange(1),
        help="Cores per fleet.  [default: with ray a node's share per GPU, with slurm 8]",
    ),
    click.option("--slurm-partition", metavar="NAME", help="Partition."),
    click.option(
        "--slurm-time", default=1440, show_default=True, type=click.IntRange(1), metavar="MINUTES",
        help="Time limit of a job; at its end it is saved and queued again.",
    ),
    click.option("--slurm-mem", metavar="SIZE", help="Memory of a job, such as 32GB."),
    click.option(
        "--slurm-signal", default=120, show_default=True, type=click.IntRange(1),
        metavar="SECONDS", help="How long before the limit a job begins to save itself.",
    ),
    click.option(
        "--slurm-set", multiple=True, metavar="NAME=VALUE",
        help="Any option of sbatch, such as account=lab; may be given several times.",
    ),
)  # fmt: skip


def launching_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def make_launcher(launching: Launching, results: Path, device: Any) -> Any:
    """None for training in this process, the plain case."""
    gpu = device.type == "cuda"
    if launching.launcher == "print":
        from cwbench.launch.printed import Printed

        return Printed()
    if launching.launcher == "ray":
        from cwbench.launch.ray import Ray

        return Ray(launching.ray_address, gpu=gpu, cpus=launching.job_cpus)
    if launching.launcher == "slurm":
        return _slurm(launching, results, gpu)
    return _local(gpu, launching.per_device)


def _local(gpu: bool, per_device: int) -> Any:
    import torch

    if not gpu and per_device > 1:
        raise click.UsageError("--per-device is for GPUs: on a CPU one process uses all cores")
    if not gpu or torch.cuda.device_count() * per_device < 2:
        return None
    from cwbench.launch.local import Local, visible_devices
    from cwbench.planning.estimate import cores

    return Local(per_device * visible_devices(torch.cuda.device_count()), cores())


def _slurm(launching: Launching, results: Path, gpu: bool) -> Any:
    from cwbench.launch.slurm import Slurm

    further = {}
    for text in launching.slurm_set:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--slurm-set {text}: write NAME=VALUE")
        further[name] = value
    named = {"partition": launching.slurm_partition, "mem": launching.slurm_mem}
    return Slurm(
        results.resolve() / "jobs" / "slurm",
        gpu=gpu,
        cpus=launching.job_cpus or 8,
        minutes=launching.slurm_time,
        parameters={name: value for name, value in named.items() if value is not None},
        further=further,
        signal_seconds=launching.slurm_signal,
    )

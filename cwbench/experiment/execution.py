"""How and where to train, as opposed to what: nothing here changes what a result means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from cwbench.spec.config import Gradients
from cwbench.spec.errors import UserError
from cwbench.spec.options import flag_name, option

if TYPE_CHECKING:
    import torch

# Compiling takes 25 to 50 seconds, and saves 0.4 to 1.7 milliseconds of an update on a GPU.
COMPILE_STEPS = 50_000
DIAGNOSE_STEPS = 1_000
# The cost per run falls with the number of runs up to these, and hardly beyond
# (docs/performance.md); so fleets are as large as these and memory allow.
LARGEST_FLEET = {"cpu": 8, "cuda": 100}
SLURM_CORES = 8  # of a job


@dataclass(frozen=True)
class Execution:
    """How one process trains."""

    device: Literal["auto", "cpu", "cuda"] = option("auto", "Device to train on.")
    workers: int | None = option(
        None,
        "Processes that step environments.  [default: as cores and runs allow]",
        minimum=1,
        maximum=1024,
    )
    threads: int | None = option(
        None,
        "Threads that train, on a CPU.  "
        "[default: one or all (of OMP_NUM_THREADS, if set), whichever is faster]",
        minimum=1,
        maximum=1024,
    )
    fleet_size: int | None = option(
        None,
        "Runs trained together, at most.  "
        f"[default: {LARGEST_FLEET['cpu']}, on CUDA {LARGEST_FLEET['cuda']}]",
        minimum=1,
        maximum=10_000,
    )
    side_by_side: int | None = option(
        None,
        "Fleets trained at the same time, at most.  [default: on CUDA as many as fit, on a CPU 1]",
        minimum=1,
        maximum=64,
        metavar="N",
    )
    compile: bool | None = option(
        None,
        "Compile updates; takes a minute.  "
        f"[default: on CUDA, for tasks of {COMPILE_STEPS:,} steps or more]",
    )
    tf32: bool = option(
        True, "On CUDA, multiply in TF32: ten times faster, good to three decimals."
    )
    gradients: Gradients = option(
        "manual", "How SAC's gradients are computed: autograd follows changes of losses.py."
    )
    diagnostics: bool | None = option(
        None,
        "Measure plasticity at evaluations.  "
        f"[default: for tasks of {DIAGNOSE_STEPS:,} steps or more]",
    )
    snapshot_minutes: float = option(
        10.0, "Time between snapshots.", minimum=0, maximum=1e6, metavar="MINUTES"
    )
    worker_timeout: float = option(
        60.0,
        "Replace a worker process that has not responded for this long.",
        minimum=1,
        maximum=1e6,
        metavar="SECONDS",
    )

    def arguments(self) -> list[str]:
        """The options of `cwbench train` that say the same."""
        found = []
        for field in fields(self):
            value, flag = getattr(self, field.name), flag_name(field.name)
            if isinstance(value, bool):
                found.append(f"--{flag}" if value else f"--no-{flag}")
            elif value is not None:
                found.append(f"--{flag}={value}")
        return found

    def settled(self, device: torch.device, steps: int) -> Execution:
        """With nothing left open, for tasks of that many steps."""
        pays = device.type == "cuda" and steps >= COMPILE_STEPS
        return replace(
            self,
            compile=pays if self.compile is None else self.compile,
            diagnostics=steps >= DIAGNOSE_STEPS if self.diagnostics is None else self.diagnostics,
        )


@dataclass(frozen=True)
class Launching:
    """On which machines, and started by whom."""

    launcher: Literal["local", "ray", "slurm", "print"] = option(
        "local", "Where to train: here, on a Ray or Slurm cluster, or print the commands."
    )
    fleets_per_gpu: int = option(
        1,
        "Small fleets that train side by side on a GPU of this machine, best under CUDA MPS.",
        minimum=1,
        maximum=64,
        metavar="N",
    )
    ray_address: str | None = option(
        None, "auto or HOST:PORT of a Ray cluster.  [default: start one here]", metavar="ADDRESS"
    )
    cpus_per_fleet: int | None = option(
        None,
        f"Cores per fleet.  [default: with ray a node's share per GPU, with slurm {SLURM_CORES}]",
        minimum=1,
        maximum=4096,
    )
    slurm_partition: str | None = option(
        None, "Partition.  [default: the cluster's]", metavar="NAME"
    )
    slurm_time: int = option(
        1440,
        "Time limit of a job; at its end it is saved and queued again.",
        minimum=1,
        maximum=10**6,
        metavar="MINUTES",
    )
    slurm_mem: str | None = option(
        None, "Memory of a job, such as 32GB.  [default: the cluster's]", metavar="SIZE"
    )
    slurm_signal: int = option(
        120,  # a chunk and a snapshot must fit
        "How long before the limit a job begins to save itself.",
        minimum=1,
        maximum=10**6,
        metavar="SECONDS",
    )
    slurm_set: tuple[str, ...] = option(
        (),
        "Any option of sbatch, such as account=lab; may be given several times.",
        metavar="NAME=VALUE",
    )

    @property
    def here(self) -> bool:
        """Whether it certainly trains on this machine, so that measuring here is useful."""
        return self.launcher == "local" or (self.launcher == "ray" and self.ray_address is None)

    @property
    def waits(self) -> bool:
        """Whether training has ended when the command has."""
        return self.launcher in ("local", "ray")


def pick_device(name: str) -> torch.device:
    """The device of that name; `auto` is CUDA where there is one."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device is available", "use --device cpu or auto")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def planned_device(execution: Execution, launching: Launching) -> torch.device:
    """The device to plan for; of another machine only its type is known."""
    import torch

    if launching.here or execution.device == "auto":
        return pick_device(execution.device)
    return torch.device(execution.device)


def set_up_torch(execution: Execution) -> None:
    """Settings of torch, the same for every process: some change the last bits of results."""
    import torch

    # Not measured but decided, for every platform: a measured choice could differ when a run is
    # continued, and with it the last bits. On ARM, oneDNN takes all cores whatever number of
    # threads is asked for (docs/performance.md).
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    torch.backends.cuda.matmul.allow_tf32 = execution.tf32
    # Until a plan says what is faster: threads that wait for each other take a second instead of
    # milliseconds per update when the machine is busy.
    torch.set_num_threads(execution.threads or 1)


@contextmanager
def torch_set_up(execution: Execution) -> Iterator[None]:
    """`set_up_torch` inside the block; afterwards torch is as the caller had it."""
    import torch

    onednn, threads = torch.backends.mkldnn.enabled, torch.get_num_threads()
    restore_precision = _precision_keeper()
    try:
        set_up_torch(execution)
        yield
    finally:
        restore_precision()
        torch.backends.mkldnn.enabled = onednn
        torch.set_num_threads(threads)


def _precision_keeper() -> Callable[[], None]:
    """A function that gives torch's matrix products the precision they have now.

    torch has two interfaces to it, and refuses to read by one what was written by the other.
    """
    import torch

    overall = None
    with suppress(RuntimeError):  # the newer one was used
        overall = torch.get_float32_matmul_precision()
    backends: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", 0)]
    newer = [(one, one.fp32_precision) for one in backends if hasattr(one, "fp32_precision")]

    def restore() -> None:
        if overall is not None:
            torch.set_float32_matmul_precision(overall)
        for backend, precision in newer:
            backend.fp32_precision = precision

    return restore

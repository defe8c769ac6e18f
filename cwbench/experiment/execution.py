"""How to train, as opposed to what: options of every command that trains, and the device."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from cwbench.experiment.launching import OPTIONS as LAUNCHING
from cwbench.experiment.launching import Launching

# Compiling takes 25 to 50 seconds, and saves 0.4 to 1.7 milliseconds of an update on a GPU.
COMPILE_STEPS = 50_000


@dataclass(frozen=True)
class Execution:
    """Nothing here changes what a result means."""

    results: Path
    device: str
    workers: int | None
    threads: int | None
    fleet_size: int | None
    compiled: bool | None  # None: where it pays
    tf32: bool
    snapshot_minutes: float
    live: bool
    dry_run: bool
    quiet: bool
    yes: bool
    launching: Launching

    @staticmethod
    def take(given: dict[str, Any]) -> "Execution":
        """Take these options out of all that were given."""
        names = [field.name for field in fields(Execution) if field.name != "launching"]
        own = {name: given.pop(name) for name in names}
        return Execution(**own, launching=Launching.take(given))

    def arguments(self) -> list[str]:
        """The options of `cwbench train` that say the same."""
        numbers = {
            "workers": self.workers,
            "threads": self.threads,
            "fleet-size": self.fleet_size,
            "snapshot-minutes": self.snapshot_minutes,
        }
        given = [f"--{name}={value:g}" for name, value in numbers.items() if value is not None]
        compiled = {True: ["--compile"], False: ["--no-compile"], None: []}[self.compiled]
        return [f"--device={self.device}", *given, *compiled, *["--no-tf32"] * (not self.tf32)]

    def settled(self, device: Any, steps: int) -> "Execution":
        """With nothing left open, for tasks of so many steps."""
        pays = device.type == "cuda" and steps >= COMPILE_STEPS
        return replace(self, compiled=pays if self.compiled is None else self.compiled)


DOING = (  # of everything that trains
    click.option(
        "--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda"]),
        help="Where to train.",
    ),
    click.option("--workers", type=click.IntRange(1), help="Processes that step environments."),
    click.option("--threads", type=click.IntRange(1), help="Threads that train, on a CPU."),
    click.option("--fleet-size", type=click.IntRange(1), help="Runs trained together, at most."),
    click.option(
        "--compile/--no-compile", "compiled", default=None,
        help="Compile updates; takes a minute.  [default: on CUDA, for tasks of 50,000 steps]",
    ),
    click.option("--tf32/--no-tf32", default=True, help="On CUDA, multiply in TF32: ten times "
        "faster, good to three decimals.  [default: on]"),
    click.option(
        "--snapshot-minutes", default=10.0, show_default=True, type=click.FloatRange(0),
        help="Time between snapshots.",
    ),
    click.option("--quiet", is_flag=True, help="Show nothing but problems."),
)  # fmt: skip
OPTIONS = (  # of everything that plans
    click.option(
        "--results", default="results", show_default=True, type=click.Path(path_type=Path),
        help="Folder.",
    ),
    *DOING,
    click.option(
        "--live/--no-live", default=True, help="Keep RESULTS/report/index.html up to date."
    ),
    click.option("--dry-run", is_flag=True, help="Show the plan and stop."),
    click.option("--yes", is_flag=True, help="Do not ask, however long it takes."),
    *LAUNCHING,
)  # fmt: skip


def execution_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def pick_device(name: str) -> Any:
    """The device of that name, with torch set up for it."""
    import torch

    # Not measured but decided, for every platform: a measured choice could differ when a run is
    # continued, and with it the last bits. On ARM, oneDNN takes all cores whatever number of
    # threads is asked for (docs/performance.md).
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]

    if name == "cuda" and not torch.cuda.is_available():
        raise click.UsageError(
            "--device cuda: no CUDA device is available; use --device cpu or auto"
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def planned_device(execution: Execution) -> Any:
    """The device to plan for; of another machine only its kind is known."""
    import torch

    if execution.launching.here or execution.device == "auto":
        return pick_device(execution.device)
    return torch.device(execution.device)

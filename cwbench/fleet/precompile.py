"""Compiles the updates of fleets to come in other processes, while this one trains.

Those processes fill the compiler's cache on disk; a fleet that starts afterwards reads its kernels
from there. Compiling in a thread would not do: CUDA graphs cannot be captured meanwhile.
"""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from cwbench.learner.cuda_graph import collect_garbage
from cwbench.learner.method import Method
from cwbench.planning.plan import Grouping, shape_key
from cwbench.planning.rehearsal import Rehearsal
from cwbench.rollout.processes import without_main
from cwbench.rollout.signals import blocked_signals, ignore_signals
from cwbench.spec.config import Gradients
from cwbench.spec.environment import environment
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

PROCESSES = 4
# Each process has its own compiler threads; workers need the cores more, hence the niceness.
ENVIRONMENT = {"TORCHINDUCTOR_COMPILE_THREADS": "4", "OMP_NUM_THREADS": "1"}
NICENESS = 10


@dataclass(frozen=True)
class Shape:
    """A group of a fleet, standing for all of its shape."""

    key: str
    group: Sequence[Segment]
    method_class: type[Method[Any]]
    dims: Dims


class Precompiler:
    """Processes that compile, in the order of a plan."""

    def __init__(
        self,
        fleets: Sequence[Sequence[Segment]],
        *,
        grouping: Grouping,
        method_of: Callable[[Segment], tuple[type[Method[Any]], Dims]],
        device: torch.device,
        gradients: Gradients = "manual",
        processes: int = PROCESSES,
    ) -> None:
        self.grouping = grouping
        groups = {shape_key(group): group for fleet in fleets for group in grouping(fleet)}
        every = [Shape(key, group, *method_of(group[0])) for key, group in groups.items()]
        # Built-in methods only: a user's, in a file or a script, cannot be imported there.
        shapes = [s for s in every if s.method_class.__module__.startswith("cwbench.")]
        self._missing: dict[Connection, set[str]] = {}
        self._processes = [
            self._start(shapes[number::processes], device, gradients)
            for number in range(min(processes, len(shapes)))
        ]

    def _start(self, shapes: Sequence[Shape], device: torch.device, gradients: Gradients) -> Any:
        context = multiprocessing.get_context("spawn")
        connection, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=compile_shapes,
            args=(theirs, shapes, device, gradients, torch_settings()),
            daemon=True,
        )
        with environment(ENVIRONMENT), without_main(), blocked_signals():
            process.start()
        theirs.close()
        self._missing[connection] = {shape.key for shape in shapes}
        return process

    def ready(self, fleet: Sequence[Segment]) -> bool:
        """Whether nothing is being compiled for this fleet any more."""
        for connection in list(self._missing):
            self._receive(connection)
        missing = set[str]().union(*self._missing.values())
        return not missing & {shape_key(group) for group in self.grouping(fleet)}

    def _receive(self, connection: Connection) -> None:
        try:
            while connection.poll():
                self._missing[connection].discard(connection.recv())
        except (EOFError, OSError):  # it is done, or has died: then training compiles for itself
            del self._missing[connection]

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def torch_settings() -> tuple[bool, bool]:
    """What the compiler's cache distinguishes by, as this process has it: TF32 and oneDNN."""
    return torch.backends.cuda.matmul.allow_tf32, bool(torch.backends.mkldnn.enabled)


def compile_shapes(
    connection: Connection,
    shapes: Sequence[Shape],
    device: torch.device,
    gradients: Gradients,
    settings: tuple[bool, bool],
) -> None:
    """The body of a process: updates of every shape, on random transitions."""
    ignore_signals()
    os.nice(NICENESS)
    torch.backends.cuda.matmul.allow_tf32, torch.backends.mkldnn.enabled = settings  # type: ignore[assignment]
    for shape in shapes:
        with contextlib.suppress(Exception):  # training meets it too, and reports it
            compile_shape(shape, device, gradients)
        collect_garbage(device)
        connection.send(shape.key)


def compile_shape(shape: Shape, device: torch.device, gradients: Gradients) -> None:
    trainer = Rehearsal(
        shape.group, shape.method_class, shape.dims, device, compiled=True, gradients=gradients
    )
    trainer.train(trainer.sac.actor_every)  # the last of them moves the actor

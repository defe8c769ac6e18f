"""Fleets wait for what is being compiled for them, and for nothing else."""

from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch

from cwbench.experiment import build
from cwbench.fleet.precompile import Precompiler, Shape, compile_shape
from cwbench.learner.method import Method
from cwbench.methods import METHODS
from cwbench.planning.plan import one_group, shape_key
from cwbench.planning.rehearsal import Rehearsal
from cwbench.sequences import Sequence as TaskIndex
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

CPU = torch.device("cpu")
SMALL = {"batch_size": 8, "width": 8, "horizon": 20, "steps_per_task": 2000, "start_steps": 100}


def fleet(name: str, runs: int, length: int, **options: Any) -> list[Segment]:
    sequence = TaskIndex("toy", ("reach-0-1", "reach-2-1000")[:length], "pointmass")
    entry = METHODS[name]
    setup = build.make_setup(name, entry, "paper", SMALL | options, sequence)
    runs_ = [build.make_run(entry, name, setup, "toy", sequence, seed) for seed in range(runs)]
    return [run.segments[-1] for run in runs_]


def test_equal_shapes_share_kernels() -> None:
    """Seeds and per-run options do not count; runs, position and method do."""
    key = shape_key(fleet("ewc", 2, 1))
    assert key == shape_key(fleet("ewc", 3, 1)[1:]) == shape_key(fleet("ewc", 2, 1, coef=7.0))
    others = [
        fleet("ewc", 3, 1),
        fleet("ewc", 2, 2),
        fleet("l2", 2, 1),
        fleet("ewc", 2, 1, width=9),
    ]
    assert len({key, *map(shape_key, others)}) == 5


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Connection, list[Shape]]]]:
    """Stand-ins: their ends of the pipes, and what each was given."""
    given: list[tuple[Connection, list[Shape]]] = []

    def start(self: Precompiler, shapes: Sequence[Shape], *_: Any) -> None:
        ours, theirs = Pipe(duplex=False)
        given.append((theirs, list(shapes)))
        self._missing[ours] = {shape.key for shape in shapes}

    monkeypatch.setattr(Precompiler, "_start", start)
    yield given
    for theirs, _ in given:
        theirs.close()


def test_a_fleet_is_ready_when_its_shape_is_or_its_process_is_gone(processes: Any) -> None:
    fleets = [fleet(name, 2, 1) for name in ("finetuning", "ewc", "l2")]
    mine = fleet("mas", 2, 1)

    class Own(Method[Any]):
        """No other process can import it."""

    def method_of(segment: Segment) -> tuple[type[Method[Any]], Dims]:
        name = segment.setup.method
        return (Own if name == "mas" else METHODS[name].method), Dims(12, 4)

    found = Precompiler(
        [*fleets, mine], grouping=one_group, method_of=method_of, device=CPU, processes=2
    )
    assert [len(shapes) for _, shapes in processes] == [2, 1]
    assert [found.ready(one) for one in (*fleets, mine)] == [False, False, False, True]
    first, second = (theirs for theirs, _ in processes)
    first.send(shape_key(fleets[0]))
    assert [found.ready(one) for one in fleets] == [True, False, False]
    second.close()  # killed, perhaps for memory
    assert [found.ready(one) for one in fleets] == [True, True, False]
    first.send(shape_key(fleets[2]))
    first.close()
    assert all(map(found.ready, fleets))


def test_a_shape_is_compiled_by_an_update_of_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """What training compiles passes through `compiled`; here it is left as it is."""
    seen: set[str] = set()

    def compiled(function: Any, device: str) -> Any:
        seen.add(function.__name__)
        return function

    monkeypatch.setattr("cwbench.learner.trainer.compiled", compiled)
    shape = Shape("", fleet("recall", 2, 2), METHODS["recall"].method, Dims(12, 4))
    compile_shape(shape, CPU, "manual")
    assert "sac_gradients" in seen


def test_a_delayed_actors_updates_are_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimiser's step is compiled for each set of weights that moves together."""
    moved: list[set[str]] = []

    def apply(self: Any, grads: Any) -> None:
        moved.append({name.split(".")[0] for name in grads})

    monkeypatch.setattr("cwbench.learner.trainer.compiled", lambda function, device: function)
    monkeypatch.setattr(Rehearsal, "apply", apply)
    segments = fleet("finetuning", 2, 1, actor_every=2)
    compile_shape(Shape("", segments, METHODS["finetuning"].method, Dims(12, 4)), CPU, "manual")
    assert moved == [{"critic"}, {"actor", "critic", "log_alpha"}, {"actor", "log_alpha"}]

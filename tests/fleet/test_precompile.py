"""Fleets wait for what is being compiled for them, and for nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench.experiment import build
from cwbench.fleet.precompile import Precompiler, Shape, compile_shape
from cwbench.learner.method import Method
from cwbench.learner.trainer import GROUPS, Trainer
from cwbench.methods import METHODS
from cwbench.planning.plan import one_group, shape_key
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


@pytest.mark.parametrize("every", [1, 3])
def test_what_moves_is_compiled_in_all_its_parts(
    every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `actor_every`, the optimiser's step of the actor is compiled apart from the critics'."""
    moved: set[str] = set()
    apply = Trainer.apply

    def seen(trainer: Trainer, grads: Mapping[str, Tensor]) -> None:
        moved.update(name.split(".")[0] for name in grads)
        apply(trainer, grads)

    monkeypatch.setattr(Trainer, "apply", seen)
    monkeypatch.setattr("cwbench.learner.trainer.compiled", lambda function, device: function)
    shape = Shape("", fleet("ewc", 2, 2, actor_every=every), METHODS["ewc"].method, Dims(12, 4))
    compile_shape(shape, CPU, "manual")
    assert moved == set(GROUPS)

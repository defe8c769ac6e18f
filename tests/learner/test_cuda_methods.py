"""Every method on an accelerator: skipped where there is none."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from cwbench import methods
from cwbench.experiment.build import make_setup
from cwbench.fleet.progress import Display
from cwbench.fleet.runner import Runner
from cwbench.learner import Batch
from cwbench.learner.cuda_graph import WARM_UP, cuda_stream
from cwbench.learner.method import Method
from cwbench.learner.trainer import Trainer
from cwbench.methods import METHODS
from cwbench.planning.plan import Run, make_plan, one_group, split_evenly, with_experts
from cwbench.planning.rehearsal import Rehearsal
from cwbench.rollout.pool import Pool
from cwbench.spec.config import (
    MethodConfig,
    NetworkConfig,
    PointMassConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import resolve
from cwbench.spec.segment import Setup
from cwbench.spec.transition import Dims
from cwbench.store.results import Store
from cwbench.store.runs import load_runs

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]
CUDA = torch.device("cuda")
OWN = [name for name, entry in METHODS.items() if entry.base is None]


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", OWN)
def test_a_member_learns_its_second_task_as_alone(name: str) -> None:
    """After 200 updates, in which weights move by 0.2 and more.

    In double precision: in single, one unit that passes its kink an update earlier is enough, or a
    gradient that is nothing but rounding, as that of a policy that is to stay as it is; weights
    that start 1e-7 apart then end up to 0.02 apart. In double, 1e-12 become at most 1e-7.
    """
    kind = METHODS[name].method
    setup = make_setup(name, METHODS[name], "paper", {"width": 64, "batch_size": 64})
    tasks = ("push", "hammer")
    segments = [kind.segments_of_run(setup, seed, tasks)[-1] for seed in range(100)]
    states = []
    for members in (segments, segments[37:38]):
        torch.manual_seed(0)  # the made-up transitions
        trainer = Rehearsal(members, kind, Dims(12, 4), CUDA)
        for column in trainer.replay.annotations.values():  # in a rehearsal, those of its first run
            column.zero_()
        trainer.train(200)
        states.append(trainer.state())
    fleet, alone = states
    for key, x in alone.items():
        assert x.dtype == torch.float64
        assert_close(fleet[key][37:38], x, atol=1e-6, rtol=0)
    weights = next(x for name, x in fleet.items() if name.startswith("actor.") and x.dim() > 3)
    assert (weights[37] - weights[38]).abs().mean() > 0.05  # members are not alike


@pytest.mark.parametrize("actor_every", [1, 2])
@pytest.mark.parametrize("name", ["ewc", "recall"])
def test_a_penalty_computed_beside_sac_changes_no_number(
    name: str, actor_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few runs compute it in a stream of its own; more of them, one after the other."""
    kind = METHODS[name].method
    setup = make_setup(name, METHODS[name], "paper", {"actor_every": actor_every})
    fleet = [kind.segments_of_run(setup, seed, ("push", "hammer"))[-1] for seed in (0, 1)]
    with cuda_stream(CUDA, 0):
        beside, after = (Rehearsal(fleet, kind, Dims(12, 4), CUDA) for _ in range(2))
        beside.train(130)
        monkeypatch.setattr("cwbench.learner.trainer.SMALL", 1)
        after.train(130)
    torch.cuda.synchronize()
    for trainer in (beside, after):
        assert trainer.captured is not None and trainer.captured.graph is not None
    states = [trainer.state() for trainer in (beside, after)]
    assert all(torch.equal(x, states[1][key]) for key, x in states[0].items())
    taken = [trainer.statistics.take() for trainer in (beside, after)]
    assert taken[0] == taken[1]


class Mistaken(Method[MethodConfig]):
    """Its penalty fails while the update is captured."""

    calls = 0

    def actor_penalty(self, batch: Batch) -> torch.Tensor:
        self.calls += 1
        if self.calls > WARM_UP:
            raise KeyError("mine")
        return super().actor_penalty(batch)


def test_a_mistake_in_a_penalty_that_is_captured_is_shown() -> None:
    setup = make_setup("finetuning", METHODS["finetuning"], "paper", {"width": 64})
    fleet = Mistaken.segments_of_run(setup, 0, ("push",))
    trainer = Rehearsal(fleet, Mistaken, Dims(12, 4), CUDA)
    with pytest.raises(KeyError, match="mine"):
        trainer.train(WARM_UP + 2)
    assert torch.randn(2, device=CUDA).isfinite().all()


def toy_runs(name: str) -> tuple[str, type[Method[Any]], list[Run]]:
    """Three seeds of a method on three tasks of the point mass."""
    base, entry = methods.load(name)
    small = {"batch_size": 8, "width": 16, "horizon": 20}
    layers = (small, entry.options, entry.method.preset)
    schedule = ScheduleConfig(120, 60, 2, 10, 20, 10)
    setup = Setup(
        base,
        resolve(entry.method.config_class, *layers),
        resolve(SACConfig, *layers),
        resolve(NetworkConfig, *layers),
        resolve(PointMassConfig, *layers),
        schedule,
    )
    tasks = ("reach-0-1", "reach-2-1000", "reach-4-1")
    kind = entry.method
    runs = [
        Run("toy", tasks, name, "toy", tuple(kind.segments_of_run(setup, seed, tasks)))
        for seed in (0, 1, 2)
    ]
    return base, kind, with_experts(runs)


def known(base: str, kind: type[Method[Any]]) -> dict[str, type[Method[Any]]]:
    """The method, and the one that trains its experts."""
    experts = {kind.experts: methods.load(kind.experts)[1].method} if kind.experts else {}
    return {base: kind} | experts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler has several of its own
@pytest.mark.parametrize("compiled", [False, True])
def test_methods_train_side_by_side(
    compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fleet with a stream and graphs of its own; compiled ahead in other processes.

    The compiler's cache is empty: EWC's backward pass is compiled in a thread of autograd.
    """
    from cwbench import envs

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiler"))
    torch.compiler.reset()
    found = [toy_runs(name) for name in ("finetuning", "ewc", "recall")]
    runs = [run for *_, own in found for run in own]
    store = Store(tmp_path / "results")
    store.add_experiment({"name": "all", "command": "", "runs": [run.record() for run in runs]})
    runner = Runner(
        store, {base: kind for base, kind, _ in found}, CUDA, envs.dims, grouping=one_group,
        compiled=compiled, snapshot_seconds=1e9, provenance=lambda segment: {}, side_by_side=3,
    )  # fmt: skip
    with Pool(2) as pool:
        outcome = runner.run(make_plan(runs, store, 8), pool, Display())
    assert not outcome.failed and not outcome.diverged
    assert (load_runs(tmp_path / "results").runs["state"] == "done").all()


@pytest.mark.parametrize("name", OWN)
def test_every_method_trains_captured_and_continues(name: str, tmp_path: Path) -> None:
    from cwbench import envs

    base, kind, runs = toy_runs(name)
    store = Store(tmp_path)
    store.add_experiment({"name": name, "command": "", "runs": [run.record() for run in runs]})

    runner = Runner(
        store, known(base, kind), CUDA, envs.dims, grouping=lambda fleet: split_evenly(fleet, 2),
        compiled=False, snapshot_seconds=0, provenance=lambda segment: {},
    )  # fmt: skip
    with Pool(2) as pool:
        outcome = runner.run(make_plan(runs, store, 8), pool, Display())
    assert not outcome.failed and not outcome.diverged
    assert (load_runs(tmp_path).runs["state"] == "done").all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's compiler has several of its own
def test_a_penalty_is_checked_after_a_distillation_has_compiled_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EWC's after that of Progress & Compress, of as many runs; on CUDA in a thread of autograd."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    made = {}
    for name in ("progress-compress", "ewc"):
        setup = make_setup(name, METHODS[name], "paper", {"width": 64, "batch_size": 64})
        kind = METHODS[name].method
        fleet = [kind.segments_of_run(setup, seed, ("push", "hammer"))[-1] for seed in (0, 1)]
        made[name] = Rehearsal(fleet, kind, Dims(12, 4), CUDA, compiled=True)
    distilling = made["progress-compress"]
    monkeypatch.setattr(
        distilling, "retrain", lambda updates, update: Trainer.retrain(distilling, 2, update)
    )
    distilling.method.end_task(1)
    made["ewc"].train(1)

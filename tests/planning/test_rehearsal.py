"""Rehearsals: memory counted tensor by tensor, requests counted but not carried out."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from planned_fleet import fleet_of

from cwbench import methods
from cwbench.planning import rehearsal
from cwbench.planning.rehearsal import PeakBytes, Rehearsal, held_bytes, run_bytes
from cwbench.spec.config import (
    MetaWorldConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.options import resolve
from cwbench.spec.segment import Segment, Setup
from cwbench.spec.transition import Dims

CPU = torch.device("cpu")


def rehearse(name: str, tasks: int, runs: int = 1, **options: Any) -> Rehearsal:
    _, entry = methods.load(name)
    setup = Setup(
        name,
        resolve(entry.method.config_class, options),
        SACConfig(batch_size=8),
        NetworkConfig(width=8),
        MetaWorldConfig(),
        ScheduleConfig(steps_per_task=50),
    )
    names = ("push", "hammer", "push-back")[:tasks]
    length = 3 if entry.method.needs_length else None
    fleet = [Segment(setup, seed, names, length=length) for seed in range(runs)]
    return Rehearsal(fleet, entry.method, Dims(12, 4), CPU)


def test_peak_is_what_lives_at_the_same_time() -> None:
    with PeakBytes() as seen:
        first = torch.zeros(1000)
        second = first + 1  # 8,000 bytes with the first
        del first
        third = second * 2  # the first is gone: 8,000 again
        view = third[:10]  # no memory of its own
        del second, third, view
    assert (seen.peak, seen.now) == (8000, 0)


def test_heads_grow_by_the_same_amount_with_every_task() -> None:
    one, two, three = (held_bytes(rehearse("finetuning", tasks)) for tasks in (1, 2, 3))
    assert three - two == two - one > 0


@pytest.mark.parametrize("name", ["finetuning", "ewc"])
def test_held_memory_is_proportional_to_runs(name: str) -> None:
    assert held_bytes(rehearse(name, 2, runs=3)) == 3 * held_bytes(rehearse(name, 2))


def test_retraining_is_counted_and_not_done() -> None:
    trainer = rehearse("packnet", 1, retrain_updates=10**9)
    critic = trainer.params["critic.1.weight"].detach().clone()
    assert trainer.count_retraining() == 10**9
    assert torch.equal(trainer.params["critic.1.weight"], critic)
    assert rehearse("finetuning", 1).count_retraining() == 0


def test_counting_does_not_import_the_compiler() -> None:
    """It takes seconds, and every command that plans would wait for it."""
    code = "import sys, torch; from cwbench.planning.rehearsal import PeakBytes\n"
    code += "with PeakBytes(): torch.zeros(3) + 1\n"
    code += "print('torch._dynamo' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "False"


def test_a_large_batch_is_rehearsed_by_a_smaller_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the batch tells its memory, but for gradients, which are counted four times."""
    fleet, method_class = fleet_of("finetuning")
    setup = replace(fleet[0].setup, sac=replace(fleet[0].setup.sac, batch_size=2048))
    large = replace(fleet[0], setup=setup)
    held, working = run_bytes(large, method_class, Dims(12, 4))
    monkeypatch.setattr(rehearsal, "LARGE_BATCH", 512)
    smaller, factor = rehearsal.with_batches_at_hand([large])
    assert smaller[0].setup.sac.batch_size == 512 and factor == 4.0
    same, about = run_bytes(large, method_class, Dims(12, 4))
    assert same == held and working < about < 1.1 * working


def test_random_rows_are_not_drawn_from_the_callers_generator() -> None:
    before = torch.get_rng_state()
    first, second = (rehearse("recall", tasks=2) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    one, two = first._random_rows(), second._random_rows()
    assert torch.equal(one, two) and not torch.equal(one, first._random_rows())

"""Reset & Distill: experts are single-task runs, and what the student learns from them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cwbench import sequences
from cwbench.experiment import build
from cwbench.learner.heads import TaskIndex
from cwbench.learner.trainer import Trainer
from cwbench.methods._cloning import mean_kl, sample_states
from cwbench.methods._distillation import distill
from cwbench.methods.reset_distill import ResetDistill, ResetDistillConfig
from cwbench.planning.plan import with_experts
from cwbench.spec.config import NetworkConfig
from cwbench.store import checkpoint

Make = Callable[..., Trainer]
TASKS = ("reach-0-1", "reach-2-1000")


def test_experts_are_the_segments_of_single_task_runs() -> None:
    """One for each task, whatever the order: ten orders of ten tasks need ten experts."""
    method, entry = build.load_method("reset-distill")
    runs = []
    for number in range(1, 11):
        sequence = sequences.get(f"orders-cw10-{number}")
        setup = build.make_setup(method, entry, "compact", {"lr": 3e-4}, sequence)
        runs.append(build.make_run(entry, method, setup, "compact", sequence, 7))
    experts = with_experts(runs)[len(runs) :]
    plain, fine = build.load_method("finetuning")
    for run in experts:
        sequence = sequences.get(run.sequence)
        setup = build.make_setup(plain, fine, "compact", {"lr": 3e-4}, sequence)
        assert run == build.make_run(fine, plain, setup, "compact", sequence, 7)
    assert len(experts) == 10
    assert len(with_experts([*runs, *experts])) == len(runs) + 10


def test_experts_that_are_there_are_not_trained_again(toy_run: Any, tmp_path: Path) -> None:
    for task in TASKS:
        toy_run(tmp_path, "finetuning", tasks=(task,))
    _, plan, outcome = toy_run(tmp_path, "reset-distill", tasks=TASKS)
    assert len(plan.segments) == 4 and outcome.trained == 2
    assert {s.setup.method for fleet in plan.fleets for s in fleet} == {"reset-distill"}
    _, plan, outcome = toy_run(tmp_path, "reset-distill", tasks=TASKS[::-1])
    assert outcome.trained == 2


def test_the_first_student_is_the_expert(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, "reset-distill", tasks=TASKS[:1])
    expert, student = (checkpoint.load(store.folder(s).end)[0] for s in plan.segments[::-1])
    actor = [name for name in expert if name.startswith("trainer/actor.")]
    assert actor and all(torch.equal(expert[name], student[name]) for name in actor)


def student_after_two_tasks(make: Make, coef: float, updates: int) -> tuple[Trainer, ResetDistill]:
    """Experts are random actors."""
    config = ResetDistillConfig(coef=coef, distill_updates=updates, memory_size=100)
    before: dict[str, Tensor] | None = None
    state: dict[str, Tensor] = {}
    for position in (0, 1):
        trainer = make(
            [3, 4],
            position=position,
            network=NetworkConfig(width=16, layers=2),
            method=lambda trainer: ResetDistill(config, trainer),
            inherited=before,
        )
        method: Any = trainer.method
        method.load_state(state)
        method.use_expert(expert(make, seed=10 + position))
        method.on_task_end(position)
        before, state = trainer.state(), method.state()
    return trainer, method


def expert(make: Make, seed: int) -> dict[str, Tensor]:
    return make([seed, seed + 50], network=NetworkConfig(width=16, layers=2)).actor_params


def divergence(trainer: Trainer, teacher: dict[str, Tensor], head: int) -> Tensor:
    """KL(teacher || student) on the current task's states, the student with a head: [R]."""
    obs = trainer.replay.stored(1)[..., :12]
    tasks = [TaskIndex.single(p, 2, obs.shape[1], trainer.device) for p in (0, head)]
    taught = torch.cat(trainer.policy(teacher, obs, tasks[0]), -1)
    return mean_kl(
        trainer.policy, trainer.params, obs, tasks[1], taught, direction="old_new", reduce="sum"
    )


def test_the_student_learns_the_expert_and_keeps_its_old_self(make_trainer: Make) -> None:
    apart, _ = student_after_two_tasks(make_trainer, coef=1.0, updates=0)
    kept, _ = student_after_two_tasks(make_trainer, coef=1.0, updates=150)
    lost, _ = student_after_two_tasks(make_trainer, coef=0.0, updates=150)
    old, new = (expert(make_trainer, seed=seed) for seed in (10, 11))
    assert (divergence(kept, new, 1) < 0.3 * divergence(apart, new, 1)).all()
    assert (divergence(lost, new, 1) < 0.3 * divergence(apart, new, 1)).all()
    # On these states nothing was recorded for the old task, so it is kept only in part.
    assert (divergence(kept, old, 0) < 0.7 * divergence(lost, old, 0)).all()
    assert not divergence(apart, old, 0).any()


def test_the_drift_is_the_divergence_of_the_student_from_its_old_self(make_trainer: Make) -> None:
    """KL(student || stored), summed over action dimensions, a mean over the states drawn."""
    trainer, method = student_after_two_tasks(make_trainer, coef=1.0, updates=3)
    width = method.states["obs"].shape[1] // 2
    method.states = {name: x[:, :width] for name, x in method.states.items()}  # the first task's
    states, tasks = sample_states(trainer, method.states, trainer.sac.batch_size)
    now, then = (
        torch.distributions.Normal(mean, log_std.exp())
        for mean, log_std in (
            trainer.policy(trainer.params, states["obs"], tasks),
            states["policy"].chunk(2, -1),
        )
    )
    expected = torch.distributions.kl_divergence(now, then).sum(-1).mean(-1)
    assert (expected > 1e-4).all()
    torch.testing.assert_close(method._drift(trainer.params), expected, rtol=1e-3, atol=1e-6)


def test_a_distillation_has_four_percent_of_the_steps(
    make_trainer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, asked = make_trainer([0]), list[int]()
    monkeypatch.setattr(trainer, "retrain", lambda updates, update: asked.append(updates))
    for updates in (None, 7, 0):
        distill(trainer, trainer.actor_params, lambda student: torch.zeros(1), updates)
    assert trainer.schedule.steps_per_task == 1_000_000 and asked == [40_000, 7, 0]


def test_the_expert_acts_for_the_task_in_training_and_the_student_for_finished_ones(
    make_trainer: Make,
) -> None:
    """In the second task, after one was distilled. The expert's one head is in its place."""
    trainer = make_trainer([3, 4], position=1, network=NetworkConfig(width=16, layers=2))
    method = ResetDistill(ResetDistillConfig(memory_size=100), trainer)
    method.states = {"obs": torch.zeros(2, 100, 12), "policy": torch.zeros(2, 100, 8)}
    new = expert(make_trainer, seed=11)
    method.use_expert(new)
    acting, student = method.policy_weights(1), trainer.actor_params
    assert all(torch.equal(acting[name], new[name]) for name in trainer.trunk_names("actor"))
    assert torch.equal(acting["actor.2.weight"][:, 1], new["actor.2.weight"][:, 0])
    assert all(torch.equal(x, student[name]) for name, x in method.policy_weights(0).items())


def test_without_updates_old_tasks_are_unchanged(make_trainer: Make) -> None:
    trainer, method = student_after_two_tasks(make_trainer, coef=1.0, updates=0)
    first = expert(make_trainer, seed=10)
    weights = method.policy_weights(0)
    assert all(torch.equal(weights[name], first[name]) for name in trainer.trunk_names("actor"))
    assert torch.equal(weights["actor.2.weight"][:, :1], first["actor.2.weight"])

"""What evaluations are asked for, and evaluations that fail."""

from typing import Any

import pytest
import torch
from point_lanes import finish_evaluations
from torch import Tensor

from cwbench.fleet.evaluation import Evaluator
from cwbench.fleet.state import Counts
from cwbench.learner.policy import make_policy
from cwbench.rollout.episodes import EvalJob, EvalResult
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import (
    MethodConfig,
    NetworkConfig,
    PointMassConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.segment import Segment, Setup


class Asked:
    """A pool that keeps what it is asked for."""

    def __init__(self) -> None:
        self.jobs: list[tuple[EvalJob, Any]] = []

    def evaluate(self, job: EvalJob, done: Any, owner: Any) -> None:
        self.jobs.append((job, done))

    def receive(self) -> None:
        """All of them: a policy's return is what it is filled with."""
        jobs, self.jobs = self.jobs, []
        for job, done in jobs:
            assert (job.task, job.purpose, job.rng_key) == (TASKS[2], "select", (2, job.head))
            assert job.episodes == 3
            done(EvalResult(9, value(job), 7, 0.0))

    def cancel(self, owner: Any) -> None:
        self.jobs.clear()


TASKS = ("reach-0-1", "reach-2-1", "reach-4-1")


def evaluator(pool: Any, counts: list[Counts], **options: Any) -> Evaluator:
    """Of two runs in their third task; policies are filled with 10 * position + run."""
    setup = Setup(
        *("finetuning", MethodConfig(), SACConfig(), NetworkConfig(width=8), PointMassConfig()),
        ScheduleConfig(eval_episodes=4),
    )
    layout = make_policy(12, 4, NetworkConfig(width=8)).layout(3)

    def policy(position: int) -> Tensor:
        return torch.tensor([[10.0 * position], [10.0 * position + 1]]).expand(2, layout.size)

    segments = [Segment(setup, seed, TASKS) for seed in (5, 6)]
    return Evaluator(pool, segments, counts=counts, layout=layout, policy=policy, **options)


def value(job: EvalJob) -> float:
    """What the weights of a job are filled with."""
    return float(job.weights.open().reshape(-1, job.layout.size)[job.row, 0])


@pytest.mark.parametrize("one_policy", [False, True])
def test_every_position_is_evaluated_on_its_task_with_its_policy_and_head(
    one_policy: bool,
) -> None:
    """Or all with the current position's policy. Episodes depend on step and position."""
    pool, found = Asked(), list[Any]()
    ours = evaluator(
        pool, [], one_policy=one_policy, evaluated=lambda *results: found.append(results)
    )
    assert ours.start(90) == [True, True]
    assert len(pool.jobs) == 6
    for number, (job, done) in enumerate(pool.jobs):
        position, run = divmod(number, 2)
        assert (job.task, job.head, job.seed) == (TASKS[position], position, 5 + run)
        assert (job.purpose, job.rng_key, job.episodes) == ("evaluate", (2, 90, position), 4)
        assert value(job) == 10 * (2 if one_policy else position) + run
        done(EvalResult(number, 0.0, 1, 0.0))
    rows = [(step, run, [result.successes for result in results]) for step, run, results in found]
    assert rows == [(90, 0, [0, 2, 4]), (90, 1, [1, 3, 5])]
    ours.close()


def test_heads_are_tried_on_one_task_and_compared_by_return() -> None:
    """Each with the policy of its position; the steps are counted apart."""
    pool, counts = Asked(), [Counts(), Counts()]
    ours = evaluator(pool, counts, one_policy=False, evaluated=lambda *_: None)
    assert ours.try_heads(2, [0, 1], 3).tolist() == [[0, 10], [1, 11]]
    assert [one.selection_steps for one in counts] == [14, 14]
    ours.close()


def test_a_failed_evaluation_raises_and_leaves_the_worker_usable() -> None:
    shapes = {"actor.0.weight": (12, 8), "actor.0.bias": (8,)}
    layout = ActorLayout(shapes, 0, 0)
    weights = SharedArray((1, layout.size))
    job = EvalJob(
        seed=0,
        purpose="evaluate",
        rng_key=(0,),
        task="reach-x-1",
        head=0,
        episodes=1,
        env=PointMassConfig(),
        layout=layout,
        weights=weights.ref,
        row=0,
    )
    with Pool(1) as pool:
        pool.evaluate(job, lambda result: None)
        with pytest.raises(WorkerError, match="invalid literal"):
            finish_evaluations(pool)
        finish_evaluations(pool)  # nothing is left waiting
    weights.close()

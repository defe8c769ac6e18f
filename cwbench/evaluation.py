"""Episodes that measure and do not train. They run in workers, while the trainer goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cwbench.method import Method
from cwbench.workers import EvalResult

if TYPE_CHECKING:
    from cwbench.fleet import Fleet


@dataclass
class _Evaluation:
    """One evaluation under way: a result per run and position."""

    step: int
    results: dict[tuple[int, int], EvalResult] = field(default_factory=dict)


class Evaluator:
    """The evaluations of one fleet, handed back in the order in which they were started."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._under_way: deque[_Evaluation] = deque()

    def start(self) -> None:
        """Evaluate every task seen, with the weights as they are now."""
        fleet = self.fleet
        evaluation = _Evaluation(fleet.step)
        self._under_way.append(evaluation)
        same = type(fleet.method).policy_weights is Method.policy_weights
        flat = fleet.flat_policy(fleet.position).cpu().numpy()
        for run, finite in enumerate(np.isfinite(flat).all(1)):
            fleet.diverged[run] |= not finite
        for position in range(fleet.trainer.tasks):
            weights = flat if same else fleet.flat_policy(position).cpu().numpy()
            for run, segment in enumerate(fleet.segments):
                self._start_episodes(
                    run,
                    weights[run],
                    partial(self._evaluated, evaluation, run, position),
                    purpose="evaluate",
                    place=(fleet.position, fleet.step, position),
                    task=segment.tasks[position],
                    head=position,
                    episodes=fleet.setup.schedule.eval_episodes,
                )

    def try_heads(self, position: int, heads: Sequence[int], episodes: int) -> Tensor:
        """Mean return of each head's policy on a position's task: [R, heads]. Waits for it."""
        fleet = self.fleet
        returns = torch.zeros(fleet.runs, len(heads))

        def tried(run: int, number: int, result: EvalResult) -> None:
            returns[run, number] = result.mean_return
            fleet.counts[run].selection_steps += result.steps

        for number, head in enumerate(heads):
            weights = fleet.flat_policy(head).cpu().numpy()
            for run, segment in enumerate(fleet.segments):
                self._start_episodes(
                    run,
                    weights[run],
                    partial(tried, run, number),
                    purpose="select",
                    place=(fleet.position, head),
                    task=segment.tasks[position],
                    head=head,
                    episodes=episodes,
                )
        fleet.pool.finish_evaluations()
        return returns.to(fleet.trainer.device)

    def _start_episodes(
        self, run: int, weights: Any, done: Callable[[EvalResult], None], **job: Any
    ) -> None:
        job |= {"seed": self.fleet.segments[run].seed, "layout": self.fleet.layout}
        self.fleet.pool.evaluate(job | {"weights": weights}, self.fleet.setup.env, done)

    def _evaluated(
        self, evaluation: _Evaluation, run: int, position: int, result: EvalResult
    ) -> None:
        evaluation.results[run, position] = result
        runs, tasks = range(self.fleet.runs), range(self.fleet.trainer.tasks)
        while self._under_way and len(self._under_way[0].results) == len(runs) * len(tasks):
            complete = self._under_way.popleft()
            for run in runs:
                results = [complete.results[run, position] for position in tasks]
                self.fleet.evaluated(complete.step, run, results)

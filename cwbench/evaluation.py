"""Episodes that measure and do not train. They run in workers, while the trainer goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cwbench.method import Method
from cwbench.workers import EvalResult

if TYPE_CHECKING:
    from cwbench.fleet import Fleet


class Evaluator:
    """The evaluations of one fleet, one after another."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._step = 0  # at which the evaluation under way began
        self._results: dict[tuple[int, int], EvalResult] = {}  # by run and position
        self._missing = 0

    def start(self) -> None:
        """Evaluate every task seen, with the weights as they are now.

        Waits for the evaluation before: collecting goes first, so they would pile up in busy
        workers, each with weights of its own.
        """
        fleet = self.fleet
        while self._missing:
            fleet.pool.receive()
        self._step, self._missing = fleet.step, fleet.runs * fleet.trainer.tasks
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
                    partial(self._evaluated, run, position),
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

    def _evaluated(self, run: int, position: int, result: EvalResult) -> None:
        self._results[run, position] = result
        self._missing -= 1
        if not self._missing:
            for run in range(self.fleet.runs):
                results = [self._results[run, p] for p in range(self.fleet.trainer.tasks)]
                self.fleet.evaluated(self._step, run, results)

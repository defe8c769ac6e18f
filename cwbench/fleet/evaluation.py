"""Episodes that measure and do not train. They run in workers, while the trainer goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cwbench.learner.method import Method
from cwbench.rollout.episodes import EvalResult
from cwbench.rollout.pool import SharedArray
from cwbench.spec.actor_layout import Floats

if TYPE_CHECKING:
    from cwbench.fleet.fleet import Fleet


class Evaluator:
    """The evaluations of one fleet, one after another."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._step = 0  # at which the evaluation under way began
        self._results: dict[tuple[int, int], EvalResult] = {}  # by run and position
        self._missing = 0
        self._shared: SharedArray | None = None  # what is evaluated: [policies, R, P]

    def start(self) -> None:
        """Evaluate every task seen, with the weights as they are now.

        Waits for the evaluation before: collecting goes first, so they would pile up in busy
        workers; and they read weights where the next one's go.
        """
        fleet = self.fleet
        while self._missing:
            fleet.pool.receive()
        self._step, self._missing = fleet.step, fleet.runs * fleet.trainer.tasks
        same = type(fleet.method).policy_weights is Method.policy_weights
        policies = self._share([fleet.position] if same else range(fleet.trainer.tasks))
        for run, finite in enumerate(np.isfinite(policies[-1]).all(1)):
            fleet.diverged[run] |= not finite
        for position in range(fleet.trainer.tasks):
            for run, segment in enumerate(fleet.segments):
                self._start_episodes(
                    run,
                    0 if same else position,
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

        self._share(heads)
        for number, head in enumerate(heads):
            for run, segment in enumerate(fleet.segments):
                self._start_episodes(
                    run,
                    number,
                    partial(tried, run, number),
                    purpose="select",
                    place=(fleet.position, head),
                    task=segment.tasks[position],
                    head=head,
                    episodes=episodes,
                )
        fleet.pool.finish_evaluations()
        return returns.to(fleet.trainer.device)

    def _share(self, positions: Sequence[int]) -> Floats:
        """Put the policies of some positions where workers read them: [policies, R, P]."""
        fleet = self.fleet
        shape = (len(positions), fleet.runs, fleet.layout.size)
        if self._shared is None or self._shared.array.shape != shape:
            self.close()
            self._shared = SharedArray(shape)
        for place, position in zip(self._shared.array, positions, strict=True):
            torch.from_numpy(place).copy_(fleet.flat_policy(position))
        return self._shared.array

    def _start_episodes(
        self, run: int, policy: int, done: Callable[[EvalResult], None], **job: Any
    ) -> None:
        fleet = self.fleet
        assert self._shared is not None
        job |= {"weights": self._shared.path, "row": policy * fleet.runs + run}
        job |= {"seed": fleet.segments[run].seed, "layout": fleet.layout}
        fleet.pool.evaluate(job, fleet.setup.env, done)

    def close(self) -> None:
        """Let go of the memory shared with workers."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def _evaluated(self, run: int, position: int, result: EvalResult) -> None:
        self._results[run, position] = result
        self._missing -= 1
        if not self._missing:
            for run in range(self.fleet.runs):
                results = [self._results[run, p] for p in range(self.fleet.trainer.tasks)]
                self.fleet.evaluated(self._step, run, results)

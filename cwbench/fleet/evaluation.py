"""Evaluation episodes: they run in workers while the trainer trains."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cwbench.fleet.state import Counts
from cwbench.rollout.episodes import EvalJob, EvalResult
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.segment import Segment

# (step, run, one result per position)
OnEvaluated = Callable[[int, int, Sequence[EvalResult]], None]


class Evaluator:
    """The evaluations of one group, one after another."""

    def __init__(
        self,
        pool: Pool,
        segments: Sequence[Segment],
        *,
        counts: Sequence[Counts],  # of each run
        layout: ActorLayout,
        policy: Callable[[int], Tensor],  # position -> weights of every run: [R, P]
        one_policy: bool,  # whether the current position's policy acts for all positions
        evaluated: OnEvaluated,
    ) -> None:
        self.pool, self.segments, self.counts = pool, segments, counts
        self.layout, self.policy, self.one_policy = layout, policy, one_policy
        self.evaluated = self._receiver = evaluated
        self.runs, self.position = len(segments), segments[0].position
        self.setup = segments[0].setup
        self._step = 0  # at which the current evaluation began
        self._results: dict[tuple[int, int], EvalResult] = {}  # by run and position
        self._missing = 0
        self.failure = ""  # of a worker, with these episodes
        self._error: Exception | None = None  # of the function that received results
        self._shared: SharedArray | None = None  # the policies evaluated: [policies, R, P]

    def start(self, step: int, evaluated: OnEvaluated | None = None) -> list[bool]:
        """Evaluate every task seen, with the current weights; whether each run's are finite.

        `evaluated` receives the results in place of the one given to all evaluations.
        Waits for the previous evaluation: workers collect first, so evaluations would pile up, and
        the weights of the previous one would be overwritten.
        """
        self.wait()
        self._receiver = evaluated or self.evaluated
        positions = range(self.position + 1)
        self._step = step
        policies = self._share([self.position] if self.one_policy else positions)
        for position in positions:
            for run, segment in enumerate(self.segments):
                self._start_episodes(
                    run,
                    0 if self.one_policy else position,
                    partial(self._received, run, position),
                    purpose="evaluate",
                    rng_key=(self.position, step, position),
                    task=segment.tasks[position],
                    head=position,
                    episodes=self.setup.schedule.eval_episodes,
                )
        return [bool(finite) for finite in np.isfinite(policies[-1]).all(1)]

    def try_heads(self, position: int, heads: Sequence[int], episodes: int) -> Tensor:
        """Mean return of each head's policy on a position's task: [R, heads]. Waits for it."""
        returns = torch.zeros(self.runs, len(heads))

        def tried(run: int, number: int, result: EvalResult) -> None:
            returns[run, number] = result.mean_return
            self.counts[run].selection_steps += result.steps

        self.wait()
        self._share(heads)
        for number, head in enumerate(heads):
            for run, segment in enumerate(self.segments):
                self._start_episodes(
                    run,
                    number,
                    partial(tried, run, number),
                    purpose="select",
                    rng_key=(self.position, head),
                    task=segment.tasks[position],
                    head=head,
                    episodes=episodes,
                )
        self.wait()
        return returns

    @property
    def idle(self) -> bool:
        """Whether all results have arrived and are recorded. Raises what prevented it."""
        if self.failure:
            raise WorkerError(self.failure)
        if self._error is not None:
            raise self._error
        return not self._missing

    def wait(self) -> None:
        while not self.idle:
            self.pool.receive()

    def _share(self, positions: Sequence[int]) -> Floats:
        """Copy the policies of some positions to shared memory: [policies, R, P]."""
        shape = (len(positions), self.runs, self.layout.size)
        if self._shared is None or self._shared.array.shape != shape:
            self._release()
            self._shared = SharedArray(shape)
        for target, position in zip(self._shared.array, positions, strict=True):
            torch.from_numpy(target).copy_(self.policy(position))
        return self._shared.array

    def _start_episodes(
        self, run: int, policy: int, done: Callable[[EvalResult], None], **job: Any
    ) -> None:
        assert self._shared is not None
        episodes = EvalJob(
            seed=self.segments[run].seed,
            env=self.setup.env,
            layout=self.layout,
            weights=self._shared.ref,
            row=policy * self.runs + run,
            **job,
        )
        self._missing += 1
        self.pool.evaluate(episodes, partial(self._arrived, done), self)

    def _arrived(self, done: Callable[[EvalResult], None], result: EvalResult) -> None:
        """Called from any wait for workers, also of another group, which an error must not end."""
        self._missing -= 1
        try:
            done(result)
        except Exception as error:
            self._error = self._error or error

    def close(self) -> None:
        """Cancel what is in progress, and release the memory shared with workers."""
        self.pool.cancel(self)
        self._release()

    def _release(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def _received(self, run: int, position: int, result: EvalResult) -> None:
        self._results[run, position] = result
        if not self._missing:
            for number in range(self.runs):
                results = [self._results[number, p] for p in range(self.position + 1)]
                self._receiver(self._step, number, results)

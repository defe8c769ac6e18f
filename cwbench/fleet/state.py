"""How far a group has come: numbers that change with every chunk and that a snapshot keeps."""

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from cwbench.rollout.episodes import Episode


@dataclass
class Counts:
    """What a run has used so far in this segment."""

    train_steps: int = 0
    eval_steps: int = 0
    selection_steps: int = 0  # episodes that only choose a head
    extra_steps: int = 0  # of environments besides the task's own
    method_bytes: int = 0  # that the method keeps for later tasks, once this one has ended
    unstable_episodes: int = 0  # training episodes in which the simulation became unstable

    episodes: int = 0  # training episodes since the last evaluation
    successes: float = 0
    returns: float = 0.0


@dataclass
class RunState:
    """One run of a group."""

    counts: Counts = field(default_factory=Counts)
    diverged: bool = False
    last_success: float = float("nan")  # success rate on the current task
    # Its transitions on disk: files and their checksums, None in snapshots of version 0.2.
    snapshot_files: dict[str, str | None] = field(default_factory=dict)

    @property
    def success(self) -> float | None:
        """The latest success rate, if there is one."""
        return None if math.isnan(self.last_success) else self.last_success


@dataclass
class GroupState:
    """All runs of a group, which are at the same step."""

    runs: list[RunState]
    step: int = 0  # environment steps of each run in this segment
    saved_steps: dict[int, int] = field(default_factory=dict)  # position -> transitions on disk
    # Weights that collect the chunks to come, [R, P] each: the last are the trainer's, and with a
    # lag there are older ones before them.
    acting: deque[Tensor] = field(default_factory=deque)
    earlier_seconds: float = 0.0  # wall time before this process took over
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Wall time spent on this segment, interruptions excluded."""
        return self.earlier_seconds + time.monotonic() - self.started

    def advance(self, step: int, episodes: Sequence[Episode], lanes: int) -> None:
        """Count the steps up to `step` and the training episodes that ended in them."""
        steps, self.step = step - self.step, step
        for run in self.runs:
            run.counts.train_steps += steps
            run.counts.extra_steps += steps * (lanes - 1)
        for episode in episodes:
            count = self.runs[episode.run].counts
            count.unstable_episodes += episode.unstable
            if episode.lane == 0 and episode.complete:
                count.episodes += 1
                count.successes += episode.score
                count.returns += episode.total

"""Messages between the pool and its workers."""

from dataclasses import dataclass

from cwbench.rollout.episodes import Episode, EvalJob, EvalResult, LaneSpec, LaneStart, LaneState
from cwbench.rollout.shared_memory import ArrayRef
from cwbench.spec.actor_layout import ActorLayout
from cwbench.spec.config import EnvConfig

# To a worker. `key` is the group's, or the evaluation's.


@dataclass(frozen=True)
class Open:
    """A worker's share of a group."""

    key: int
    lanes: tuple[LaneSpec, ...]  # this worker's
    layout: ActorLayout
    weights: ArrayRef  # [R, P]
    version: ArrayRef  # of the weights: [1]
    chunks: ArrayRef  # [lanes, chunk, F]
    slots: tuple[int, ...]  # rows of `chunks`, one per lane
    env: EnvConfig
    starts: tuple[LaneStart, ...]


@dataclass(frozen=True)
class Collect:
    """Roll every lane of a group for n steps, once the weights of this version have arrived."""

    key: int
    steps: int
    version: int


@dataclass(frozen=True)
class Save:
    """Send the state of every lane of a group."""

    key: int


@dataclass(frozen=True)
class Close:
    """Forget a group or an evaluation."""

    key: int


@dataclass(frozen=True)
class Evaluate:
    key: int
    job: EvalJob


@dataclass(frozen=True)
class Reset:
    """Forget everything."""


@dataclass(frozen=True)
class Stop:
    """End the process."""


Request = Open | Collect | Save | Close | Evaluate | Reset | Stop

# From a worker.


@dataclass(frozen=True)
class Collected:
    """A chunk is in shared memory."""

    key: int
    episodes: list[Episode]  # that ended in it
    start: float  # of collecting, by the machine's monotonic clock
    end: float


@dataclass(frozen=True)
class Saved:
    key: int
    states: dict[tuple[int, int], LaneState]  # by run and lane


@dataclass(frozen=True)
class Evaluated:
    key: int
    result: EvalResult


@dataclass(frozen=True)
class Failed:
    """An error; the worker has forgotten the group or evaluation in which it happened."""

    key: int  # 0: neither
    traceback: str


@dataclass(frozen=True)
class Emptied:
    """The answer to Reset."""


Answer = Collected | Saved | Evaluated | Failed | Emptied

"""The lanes of one group: spread over a pool, rolled out in chunks, saved, taken over."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean

import numpy as np

from cwbench import envs
from cwbench.rollout.balance import assign_lanes
from cwbench.rollout.episodes import Episode, LaneSpec, LaneStart, LaneState
from cwbench.rollout.messages import Close, Collect, Open, Save
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.config import EnvConfig


class History:
    """The latest actions of a group's lanes, to be repeated by a worker that takes lanes over."""

    def __init__(self, step: int) -> None:
        self.step = step  # of all lanes, after the last chunk
        self._chunks: deque[tuple[int, Floats]] = deque()  # first step, actions [lanes, n, A]

    def add(self, actions: Floats, oldest: int) -> None:
        """A chunk's actions; those before step `oldest` are no longer needed."""
        self._chunks.append((self.step, actions.copy()))
        self.step += actions.shape[1]
        while self._chunks and self._chunks[0][0] + self._chunks[0][1].shape[1] <= oldest:
            self._chunks.popleft()

    def since(self, lane: int, step: int) -> Floats | None:
        """One lane's actions from a step on: [n, A]."""
        parts = [actions[lane, max(0, step - first) :] for first, actions in self._chunks]
        return np.concatenate(parts) if parts else None


class Collector:
    """The lanes of one group, spread over a pool."""

    def __init__(
        self,
        pool: Pool,
        lanes: Sequence[LaneSpec],
        layout: ActorLayout,
        env: EnvConfig,
        *,
        runs: int,
        longest: int,
        width: int,
        states: Mapping[tuple[int, int], LaneState],
    ) -> None:
        self.pool, self.env, self.key = pool, env, next(pool.keys)
        self.lanes, self.layout = list(lanes), layout
        self.weights = SharedArray((runs, layout.size))
        self.chunks = SharedArray((len(lanes), longest, width))
        self.version = SharedArray((1,), np.int64)  # of the weights
        self.episodes: dict[int, list[Episode]] = {}  # of the last request, by worker
        self.states: dict[int, Mapping[tuple[int, int], LaneState]] = {}  # of lanes, by worker
        self.failure = ""
        self._collect: Collect | None = None  # the request in progress
        self._saving = False
        self._slots = {(lane.run, lane.lane): slot for slot, lane in enumerate(lanes)}
        self._starts = [_start(states.get(key)) for key in self._slots]
        self._history = History(self._starts[0].step)
        self._shares = self._assign(lanes)
        self._users = [worker for worker, slots in enumerate(self._shares) if slots]
        pool.collectors[self.key] = self
        for worker in self._users:
            self._open(worker)

    def _open(self, worker: int) -> None:
        slots = self._shares[worker]
        request = Open(
            self.key,
            tuple(self.lanes[slot] for slot in slots),
            self.layout,
            self.weights.ref,
            self.version.ref,
            self.chunks.ref,
            tuple(slots),
            self.env,
            tuple(self._start_of(slot) for slot in slots),
        )
        self.pool.send(worker, request)

    def _start_of(self, slot: int) -> LaneStart:
        """Where a lane is after the last complete chunk."""
        start = self._starts[slot]
        return replace(start, actions=self._history.since(slot, start.step))

    def _assign(self, lanes: Sequence[LaneSpec]) -> list[list[int]]:
        """Lanes for each worker. Which worker steps a lane changes no number."""
        costs = [fmean(envs.step_cost(task, self.env) for _, task in lane.cycle) for lane in lanes]
        shares = assign_lanes(costs, self.pool.load)
        self._load = [sum(costs[slot] for slot in share) for share in shares]
        self.pool.load = [a + b for a, b in zip(self.pool.load, self._load, strict=True)]
        return shares

    def request(self, steps: int, version: int) -> None:
        """Roll every lane for n steps, once the weights of this version have arrived."""
        self._collect = Collect(self.key, steps, version)
        self.episodes.clear()
        for worker in self._users:
            self.pool.send(worker, self._collect)

    def receive(self) -> tuple[Floats, list[Episode]]:
        """Transitions [lanes, steps, F] of the last request, and the episodes that ended."""
        assert self._collect is not None
        while not self.complete:
            self.pool.receive()
        chunk = self.chunks.array[:, : self._collect.steps]
        episodes = _sorted(chain(*self.episodes.values()))
        self._collect = None
        self._remember(chunk, episodes)
        return chunk, episodes

    @property
    def workers(self) -> int:
        """How many step its lanes."""
        return len(self._users)

    @property
    def complete(self) -> bool:
        """Whether all of the last request has arrived. WorkerError if it never will."""
        if self.failure:
            raise WorkerError(self.failure)
        return len(self.episodes) == len(self._users)

    def _remember(self, chunk: Floats, episodes: Sequence[Episode]) -> None:
        for episode in episodes:
            self._starts[self._slots[episode.run, episode.lane]] = episode.following
        actions = envs.dims(self.env).unpack(chunk)["action"]
        self._history.add(actions, min(start.step for start in self._starts))

    def save(self) -> dict[tuple[int, int], LaneState]:
        """The exact state of every lane, by (run, lane)."""
        self.states.clear()
        self._saving = True
        for worker in self._users:
            self.pool.send(worker, Save(self.key))
        while len(self.states) < len(self._users):
            self.pool.receive()
            if self.failure:
                raise WorkerError(self.failure)
        self._saving = False
        return {lane: state for states in self.states.values() for lane, state in states.items()}

    def waits_for(self, worker: int) -> bool:
        if worker not in self._users:
            return False
        collecting = self._collect is not None and worker not in self.episodes
        return collecting or (self._saving and worker not in self.states)

    def repeat(self, worker: int) -> None:
        """Give a new process what the one before it had to do.

        A chunk in progress is collected again even if it had been received: weights and chunk are
        still the same, and so are the results.
        """
        if worker not in self._users or self.failure:
            return
        self._open(worker)
        if self._collect is not None:
            self.episodes.pop(worker, None)
            self.pool.send(worker, self._collect)
        if self._saving and worker not in self.states:
            self.pool.send(worker, Save(self.key))

    def close(self) -> None:
        self.pool.collectors.pop(self.key, None)
        for worker in self._users:
            self.pool.send(worker, Close(self.key))
        self.pool.load = [a - b for a, b in zip(self.pool.load, self._load, strict=True)]
        for shared in (self.weights, self.chunks, self.version):
            shared.close()


def _start(state: LaneState | None) -> LaneStart:
    if state is None:
        return LaneStart()
    return LaneStart(step=int(state["numbers"][0]), state=state)


def _sorted(episodes: Iterable[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda episode: (episode.run, episode.lane))

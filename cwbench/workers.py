"""Worker processes: environments and numpy policies. They roll out chunks and evaluation episodes.

A worker answers requests from one pipe. A chunk is collected as soon as its weights are in shared
memory. Collecting comes first; evaluations advance by one step of one environment whenever nothing
can be collected, so they fill the time in which the trainer trains.
Every episode has its own generators, named by (seed, purpose, position, ...): nothing that happens
elsewhere, in evaluations or other runs, can change what an episode draws.
"""

import math
import select
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench.actor import Actor, Floats, Layout
from cwbench.config import EnvConfig

PURPOSES = {"reset": 0, "act": 1, "explore": 2, "evaluate": 3, "select": 4}

Make = Callable[[str, EnvConfig], Any]

LOOK_SECONDS = 2e-4  # between looks for weights, when there is nothing else to do


def generator(seed: int, purpose: str, *place: int) -> np.random.Generator:
    return np.random.default_rng([seed, PURPOSES[purpose], *place])


@dataclass(frozen=True)
class LaneSpec:
    """One stream of environment steps of a run."""

    run: int  # place in the fleet
    seed: int
    position: int  # of the segment
    lane: int  # 0 is the run's own task; others step further environments
    cycle: tuple[tuple[int, str], ...]  # (head, task) of successive episodes
    explore_steps: int
    explore_heads: tuple[int, ...]


@dataclass
class Episode:
    """A finished training episode."""

    run: int
    lane: int
    success: bool
    total: float


@dataclass(frozen=True)
class Collected:
    """A worker's part of a chunk."""

    episodes: list[Episode]
    slots: tuple[int, ...]  # of the lanes
    moments: list[float]  # when it began, and when it was done with each of them


class Envs:
    """Environments of one process, reused: building one costs more than resetting it."""

    def __init__(self, make: Make, config: EnvConfig) -> None:
        self.make, self.config = make, config
        self.idle: dict[str, list[Any]] = {}

    def take(self, task: str) -> Any:
        idle = self.idle.get(task)
        return idle.pop() if idle else self.make(task, self.config)

    def give(self, task: str, env: Any) -> None:
        self.idle.setdefault(task, []).append(env)


class Lane:
    """Rolls one run's training episodes, chunk by chunk."""

    def __init__(self, spec: LaneSpec, envs: Envs, actor: Actor, action_dim: int) -> None:
        self.spec, self.envs, self.actor, self.action_dim = spec, envs, actor, action_dim
        self.step = 0  # of the segment
        self.episode = -1
        self.time = 0  # in the episode
        self.total, self.success = 0.0, False
        self.tried = np.zeros((2, len(spec.explore_heads)))  # episodes, returns of each head
        self.choice = 0  # which of the exploration heads acts
        self.env: Any = None
        self.head, self.task = 0, ""
        self.noise = self.uniform = np.empty((0, action_dim), np.float32)
        self.obs: Floats = np.empty(0, np.float32)

    def begin_episode(self) -> None:
        self._enter(self.episode + 1)
        spec = self.spec
        self.obs = self.env.reset(
            generator(spec.seed, "reset", spec.position, spec.lane, self.episode)
        )
        self.time, self.total, self.success = 0, 0.0, False
        if spec.explore_heads:
            episodes, returns = self.tried
            untried = np.flatnonzero(episodes == 0)
            self.choice = int(untried[0] if len(untried) else np.argmax(returns / episodes))

    def _enter(self, episode: int) -> None:
        """Take the environment and draw the noise of an episode."""
        spec = self.spec
        head, task = spec.cycle[episode % len(spec.cycle)]
        if self.env is None or self.task != task:
            if self.env is not None:
                self.envs.give(self.task, self.env)
            self.env = self.envs.take(task)
        self.episode, self.head, self.task = episode, head, task
        shape = (self.envs.config.horizon, self.action_dim)
        place = (spec.position, spec.lane, episode)
        self.noise = generator(spec.seed, "act", *place).standard_normal(shape, np.float32)
        explore = generator(spec.seed, "explore", *place).random(shape, np.float32)
        self.uniform = 2 * explore - 1

    def action(self) -> Floats:
        exploring = self.step < self.spec.explore_steps
        if exploring and not self.spec.explore_heads:
            random: Floats = self.uniform[self.time]
            return random
        head = self.spec.explore_heads[self.choice] if exploring else self.head
        action = self.actor.act(self.obs, head, self.noise[self.time])
        # A diverged run must not take its worker down; the trainer reports the run.
        return action if all(map(math.isfinite, action.tolist())) else np.zeros_like(action)

    def collect(self, out: Floats) -> list[Episode]:
        """Fill [n, F] with transitions; episodes that end on the way are returned."""
        finished = []
        if self.env is None:
            self.begin_episode()
        obs_dim, act_dim = len(self.obs), self.action_dim
        for row in out:
            action = self.action()
            obs, reward, success, truncated = self.env.step(action)
            row[:obs_dim] = self.obs
            row[obs_dim : obs_dim + act_dim] = action
            row[obs_dim + act_dim] = reward
            row[obs_dim + act_dim + 1 :] = obs
            self.obs = obs
            self.total += reward
            self.success |= success
            self.step += 1
            self.time += 1
            if truncated:
                finished.append(self.end_episode())
                self.begin_episode()
        return finished

    def end_episode(self) -> Episode:
        if self.spec.explore_heads:
            self.tried[:, self.choice] += 1, self.total
        return Episode(self.spec.run, self.spec.lane, self.success, self.total)

    def save(self) -> dict[str, NDArray[Any]]:
        state = {f"env.{key}": value for key, value in self.env.save().items()}
        numbers = [self.step, self.episode, self.time, self.total, self.success, self.choice]
        return state | {"numbers": np.array(numbers, float), "obs": self.obs, "tried": self.tried}

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        step, episode, time, total, success, choice = state["numbers"].tolist()
        self._enter(int(episode))
        self.env.load({k[4:]: v for k, v in state.items() if k.startswith("env.")})
        self.step, self.time, self.total = int(step), int(time), total
        self.success, self.choice = bool(success), int(choice)
        self.obs, self.tried = state["obs"].astype(np.float32), state["tried"].copy()


@dataclass(frozen=True)
class EvalJob:
    """Episodes of one policy on one task; never split, so that batches stay the same."""

    key: int
    seed: int
    purpose: str  # evaluate or select
    place: tuple[int, ...]  # names the generators, with the episode
    task: str
    head: int
    episodes: int
    layout: Layout
    weights: str  # a file that is shared memory, [..., P], left alone until the job is done
    row: int  # of it, counted over all axes but the last

    @property
    def actor(self) -> Actor:
        size, start = self.layout.size, 4 * self.row * self.layout.size
        flat = np.memmap(self.weights, np.float32, "r", offset=start, shape=(size,))
        return Actor(self.layout, np.asarray(flat))


@dataclass(frozen=True)
class EvalResult:
    key: int
    successes: int
    mean_return: float
    steps: int
    seconds: float  # of the worker's time


class Evaluation:
    """A job under way: all its episodes step together, so that the policy sees one batch."""

    def __init__(self, job: EvalJob, envs: Envs, action_dim: int) -> None:
        self.job, self.envs, self.action_dim = job, envs, action_dim
        self.totals = np.zeros(job.episodes)
        self.success = np.zeros(job.episodes, bool)
        self.seconds = 0.0
        self._moves = self._play()

    def advance(self) -> EvalResult | None:
        """One step of one episode, so that nobody waits for long; the result after the last."""
        start = time.monotonic()
        over = next(self._moves)
        self.seconds += time.monotonic() - start
        if not over:
            return None
        steps, mean = self.envs.config.horizon * self.job.episodes, float(self.totals.mean())
        return EvalResult(self.job.key, int(self.success.sum()), mean, steps, self.seconds)

    def _play(self) -> Iterator[bool]:
        """Yields after every reset and every step of an environment; True when all is over."""
        job, shape = self.job, (self.envs.config.horizon, self.action_dim)
        actor = job.actor
        fleet, first, draws = [], [], []
        for episode in range(job.episodes):
            rng = generator(job.seed, job.purpose, *job.place, episode)
            fleet.append(self.envs.take(job.task))
            first.append(fleet[episode].reset(rng))
            draws.append(rng.standard_normal(shape, np.float32))
            yield False
        obs = np.stack(first)
        for noise in np.stack(draws, 1):
            actions = np.nan_to_num(actor.act(obs, job.head, noise))
            for episode, env in enumerate(fleet):
                obs[episode], reward, success, _ = env.step(actions[episode])
                self.totals[episode] += reward
                self.success[episode] |= success
                yield False
        for env in fleet:
            self.envs.give(job.task, env)
        yield True


@dataclass(frozen=True)
class FleetSpec:
    """What a worker must know of a fleet."""

    key: int
    lanes: tuple[LaneSpec, ...]  # this worker's
    layout: Layout
    weights: str  # files that are shared memory: [R, P], [lanes, chunk, F], [1]
    chunks: str
    version: str  # of the weights
    shapes: tuple[tuple[int, int], tuple[int, int, int]]
    slots: tuple[int, ...]  # rows of `chunks`, one per lane
    env: EnvConfig
    states: tuple[Mapping[str, NDArray[Any]] | None, ...]


@dataclass(frozen=True)
class OpenFleet:
    """A worker's part of a fleet."""

    lanes: list[Lane]
    slots: tuple[int, ...]
    chunks: Floats
    version: NDArray[np.int64]


@dataclass(frozen=True)
class Request:
    """A chunk to collect, with weights that may still be on their way."""

    fleet: OpenFleet
    steps: int
    version: int

    @property
    def ready(self) -> bool:
        return bool(self.fleet.version[0] >= self.version)


class Worker:
    def __init__(self, connection: Connection, make: Make, action_dim: int) -> None:
        self.connection, self.make, self.action_dim = connection, make, action_dim
        self.envs: dict[EnvConfig, Envs] = {}
        self.fleets: dict[int, OpenFleet] = {}
        self.requests: dict[int, Request] = {}  # by fleet
        self.evaluations: deque[Evaluation] = deque()

    def serve(self) -> None:
        """Answer until told to stop. What fails is reported, and the worker goes on."""
        while True:
            task = self._task()
            if self._message_within(0 if task else LOOK_SECONDS if self.requests else None):
                name, *arguments = self.connection.recv()
                if name == "stop":
                    return
                task = partial(getattr(self, name), *arguments)
            if task:
                try:
                    task()
                except Exception:
                    self.connection.send(("failed", traceback.format_exc(), None))

    def _message_within(self, seconds: float | None) -> bool:
        # Not `connection.poll`: it rounds up to whole milliseconds and costs four times as much.
        return bool(select.select([self.connection], [], [], seconds)[0])

    def _task(self) -> Callable[[], None] | None:
        """What can be done without a message: a chunk whose weights are there, or evaluating."""
        for key, request in self.requests.items():
            if request.ready:
                return partial(self._collect, key)
        return self._advance if self.evaluations else None

    def _collect(self, key: int) -> None:
        request = self.requests.pop(key)
        fleet, episodes = request.fleet, list[Episode]()
        moments = [time.monotonic()]
        for lane, slot in zip(fleet.lanes, fleet.slots, strict=True):
            episodes += lane.collect(fleet.chunks[slot, : request.steps])
            moments.append(time.monotonic())
        self.connection.send(("collected", key, Collected(episodes, fleet.slots, moments)))

    def _advance(self) -> None:
        """One step of the oldest evaluation."""
        evaluation = self.evaluations[0]
        try:
            result = evaluation.advance()
        except Exception:
            self.evaluations.popleft()
            self.connection.send(("failed", traceback.format_exc(), evaluation.job.key))
            return
        if result is not None:
            self.evaluations.popleft()
            self.connection.send(("evaluated", result))

    def _envs(self, config: EnvConfig) -> Envs:
        return self.envs.setdefault(config, Envs(self.make, config))

    def open(self, spec: FleetSpec) -> None:
        weights = np.memmap(spec.weights, np.float32, "r", shape=spec.shapes[0])
        chunks = np.memmap(spec.chunks, np.float32, "r+", shape=spec.shapes[1])
        envs = self._envs(spec.env)
        lanes = [
            Lane(lane, envs, Actor(spec.layout, np.asarray(weights)[lane.run]), self.action_dim)
            for lane in spec.lanes
        ]
        for lane, state in zip(lanes, spec.states, strict=True):
            if state is not None:
                lane.load(state)
        version = np.memmap(spec.version, np.int64, "r", shape=(1,))
        self.fleets[spec.key] = OpenFleet(
            lanes, spec.slots, np.asarray(chunks), np.asarray(version)
        )

    def collect(self, key: int, steps: int, version: int) -> None:
        self.requests[key] = Request(self.fleets[key], steps, version)

    def evaluate(self, job: EvalJob, env: EnvConfig) -> None:
        self.evaluations.append(Evaluation(job, self._envs(env), self.action_dim))

    def save(self, key: int) -> None:
        lanes = self.fleets[key].lanes
        states = [(lane.spec.run, lane.spec.lane, lane.save()) for lane in lanes]
        self.connection.send(("saved", key, states))

    def reset(self) -> None:
        """Environments go too: one may have failed in the middle of a step."""
        for table in (self.envs, self.fleets, self.requests):
            table.clear()
        self.evaluations.clear()
        self.connection.send(("empty",))

    def close(self, key: int) -> None:
        self.requests.pop(key, None)
        for lane in self.fleets.pop(key).lanes:
            if lane.env is not None:
                lane.envs.give(lane.task, lane.env)


def work(connection: Connection, make: Make | None, action_dim: int) -> None:
    """The body of a worker process."""
    # Ctrl-C reaches the whole process group, and a cluster's scheduler signals every process of a
    # job; the parent decides when workers end, after it has asked them for their state.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    try:
        if make is None:
            from cwbench import envs

            make = envs.make
        Worker(connection, make, action_dim).serve()
    except (EOFError, ConnectionError):
        return  # the parent is gone

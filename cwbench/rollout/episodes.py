"""What workers roll out with environments and numpy policies: training lanes and evaluations.

Every episode has its own generators, named by (seed, purpose, position, ...): nothing that happens
elsewhere, in evaluations or other runs, can change what an episode draws.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbench import envs
from cwbench.envs import Env, HasSuccessTests, instability
from cwbench.rollout.numpy_policy import Actor
from cwbench.rollout.shared_memory import ArrayRef
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.config import EnvConfig
from cwbench.spec.statistics import success_column

PURPOSES = {"reset": 0, "act": 1, "explore": 2, "evaluate": 3, "select": 4}

Make = Callable[[str, Any], Env]
LaneState = Mapping[str, NDArray[Any]]


def generator(seed: int, purpose: str, *key: int) -> np.random.Generator:
    return np.random.default_rng([seed, PURPOSES[purpose], *key])


@dataclass(frozen=True)
class LaneSpec:
    """One stream of environment steps of a run."""

    run: int  # index in the group
    seed: int
    position: int  # of the segment
    lane: int  # 0 is the run's own task; others step further environments
    cycle: tuple[tuple[int, str], ...]  # (head, task) of successive episodes
    explore_steps: int = 0
    explore_heads: tuple[int, ...] = ()


@dataclass(frozen=True)
class LaneStart:
    """Where a lane begins: at an episode's start or in a saved state, then repeating actions."""

    step: int = 0  # of the segment
    episode: int = 0
    tried: NDArray[Any] | None = None  # see Lane
    state: LaneState | None = None  # takes precedence over the numbers above
    actions: Floats | None = None  # [n, A], not beyond the episode's end


@dataclass
class Episode:
    """A finished training episode."""

    run: int
    lane: int
    score: float
    total: float
    following: LaneStart  # the start of the next one
    complete: bool = True  # False: cut off when the next task's turn came
    unstable: bool = False  # whether the simulation became unstable in it


class Envs:
    """Environments of one process, reused: building one costs more than resetting it."""

    def __init__(self, config: EnvConfig, make: Make = envs.make) -> None:
        self.make, self.config = make, config
        self.dims = envs.dims(config)
        self.idle: dict[str, list[Env]] = {}

    def take(self, task: str) -> Env:
        idle = self.idle.get(task)
        if idle:
            return idle.pop()
        env = self.make(task, self.config)
        instability.silence()
        return env

    def give(self, task: str, env: Env) -> None:
        self.idle.setdefault(task, []).append(env)


class Lane:
    """Rolls one run's training episodes, chunk by chunk."""

    def __init__(self, spec: LaneSpec, envs: Envs, actor: Actor) -> None:
        self.spec, self.envs, self.actor = spec, envs, actor
        self.dims, self.action_dim = envs.dims, envs.dims.action
        # Whether an episode's score is that of its last step, not its best.
        self.last_counts = getattr(envs.config, "success", "any") == "last"
        self.step = 0  # of the segment
        self.episode = -1
        self.time = 0  # in the episode
        self.total = 0.0
        self.score: float = False  # stays a count where scores are successes
        self.tried = np.zeros((2, len(spec.explore_heads)))  # episodes, returns of each head
        self.choice = 0  # which of the exploration heads acts
        self.env: Any = None
        self.head, self.task = 0, ""
        self.noise = self.uniform = np.empty((0, self.action_dim), np.float32)
        self.obs: Floats = np.empty(0, np.float32)

    def begin_episode(self) -> None:
        self._enter(self.episode + 1)
        spec = self.spec
        self.obs = self.env.reset(
            generator(spec.seed, "reset", spec.position, spec.lane, self.episode)
        )
        self.time, self.total, self.score = 0, 0.0, False
        if spec.explore_heads:
            episodes, returns = self.tried
            untried = np.flatnonzero(episodes == 0)
            self.choice = int(untried[0] if len(untried) else np.argmax(returns / episodes))

    def _enter(self, episode: int) -> None:
        """Take the environment and draw the noise of an episode."""
        spec, horizon = self.spec, self.envs.config.horizon
        head, task = spec.cycle[self.step // horizon % len(spec.cycle)]
        if self.env is None or self.task != task:
            if self.env is not None:
                self.envs.give(self.task, self.env)
            self.env = self.envs.take(task)
        self.episode, self.head, self.task = episode, head, task
        shape = (horizon, self.action_dim)
        rng_key = (spec.position, spec.lane, episode)
        self.noise = generator(spec.seed, "act", *rng_key).standard_normal(shape, np.float32)
        explore = generator(spec.seed, "explore", *rng_key).random(shape, np.float32)
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
        pack, terminates = self.dims.pack, self.dims.terminates
        # Tasks of a cycle take turns of a horizon each, however long their episodes are.
        turn = self.envs.config.horizon if len(self.spec.cycle) > 1 else 0
        for row in out:
            action = self.action()
            before = self.obs
            reward, terminated, truncated = self._step(action)
            pack(row, before, action, reward, self.obs)
            if terminates:
                row[-1] = terminated
            if terminated or truncated:
                finished.append(self.end_episode())
                self.begin_episode()
            elif turn and not self.step % turn:
                finished.append(self.end_episode(complete=False))
                self.begin_episode()
        return finished

    def _step(self, action: Floats) -> tuple[float, bool, bool]:
        """Reward, terminated, truncated."""
        self.obs, reward, score, terminated, truncated = self.env.step(action)
        self.total += reward
        if self.last_counts or score > self.score:
            self.score = score
        self.step += 1
        self.time += 1
        return reward, terminated, truncated

    def end_episode(self, *, complete: bool = True) -> Episode:
        if self.spec.explore_heads:
            self.tried[:, self.choice] += 1, self.total
        following = LaneStart(self.step, self.episode + 1, self.tried.copy())
        return Episode(
            self.spec.run,
            self.spec.lane,
            self.score,
            self.total,
            following,
            complete,
            unstable=getattr(self.env, "unstable", False),
        )

    def save(self) -> dict[str, NDArray[Any]]:
        if self.env is None:  # taken over from a lost worker where an episode begins
            self.begin_episode()
        state = {f"env.{key}": value for key, value in self.env.save().items()}
        numbers = [self.step, self.episode, self.time, self.total, self.score, self.choice]
        return state | {"numbers": np.array(numbers, float), "obs": self.obs, "tried": self.tried}

    def start(self, start: LaneStart) -> None:
        """Continue from there."""
        if start.state is not None:
            self.load(start.state)
        else:
            self.step, self.episode = start.step, start.episode - 1
            self.tried = self.tried if start.tried is None else start.tried.copy()
        if start.actions is not None and len(start.actions):
            if self.env is None:
                self.begin_episode()
            for action in start.actions:
                self._step(action)

    def load(self, state: LaneState) -> None:
        step, episode, time, total, score, choice = state["numbers"].tolist()
        self.step, self.time, self.total = int(step), int(time), total
        self.score, self.choice = int(score) if score in (0, 1) else score, int(choice)
        self.obs, self.tried = state["obs"].astype(np.float32), state["tried"].copy()
        self._enter(int(episode))
        if env := {k[4:]: v for k, v in state.items() if k.startswith("env.")}:
            self.env.load(env)
        else:  # its state cannot be saved
            self.begin_episode()


@dataclass(frozen=True)
class EvalJob:
    """Episodes of one policy on one task; never split, so that batches stay the same."""

    seed: int
    purpose: str  # evaluate or select
    rng_key: tuple[int, ...]  # selects the generators, together with the episode
    task: str
    head: int
    episodes: int
    env: EnvConfig
    layout: ActorLayout
    weights: ArrayRef  # [..., P], not changed until the job is done
    row: int  # of `weights`, counted over all axes but the last

    @property
    def actor(self) -> Actor:
        rows = self.weights.open().reshape(-1, self.layout.size)
        return Actor(self.layout, rows[self.row])


@dataclass(frozen=True)
class EvalResult:
    successes: float  # the sum of the episodes' scores
    mean_return: float
    steps: int
    seconds: float  # of the worker's time
    # Episodes solved by each test of the environment, "TEST_any" and "TEST_last" step.
    more_successes: Mapping[str, int] = field(default_factory=dict)

    def solved(self, env: EnvConfig) -> float:
        """Episodes solved, as the environment counts; the sum of the scores without tests."""
        column = success_column(getattr(env, "success", None))
        return self.more_successes.get(column, self.successes)


class Evaluation:
    """A job under way: all its episodes step together, so that the policy sees one batch."""

    def __init__(self, job: EvalJob, envs: Envs) -> None:
        self.job, self.envs, self.action_dim = job, envs, envs.dims.action
        self.totals = np.zeros(job.episodes)
        self.scores: list[float] = [False] * job.episodes
        self.solved: dict[str, list[bool]] = {}  # by test
        self.steps, self.seconds = 0, 0.0
        self._moves = self._play()

    def advance(self) -> EvalResult | None:
        """One step of one episode, so that other work need not wait; the result after the last."""
        start = time.monotonic()
        over = next(self._moves)
        self.seconds += time.monotonic() - start
        if not over:
            return None
        mean = float(self.totals.mean())
        more = {name: sum(solved) for name, solved in self.solved.items()}
        return EvalResult(sum(self.scores), mean, self.steps, self.seconds, more)

    @property
    def counted_scores(self) -> list[float]:
        """Scores of the episodes as the environment counts: of their best or of their last step."""
        column = success_column(getattr(self.job.env, "success", None))
        return [*self.solved.get(column, self.scores)]

    def _count(self, episode: int, tests: Mapping[str, bool]) -> None:
        """Note which tests this step passes."""
        for test, passed in tests.items():
            for name in (f"{test}_any", f"{test}_last"):
                self.solved.setdefault(name, [False] * self.job.episodes)
            self.solved[f"{test}_any"][episode] |= passed
            self.solved[f"{test}_last"][episode] = passed

    def _play(self) -> Iterator[bool]:
        """Yields after every reset and every step of an environment; True when all is over."""
        job, shape = self.job, (self.envs.config.horizon, self.action_dim)
        actor = job.actor
        playing: list[Env] = []
        first, draws = [], []
        for episode in range(job.episodes):
            rng = generator(job.seed, job.purpose, *job.rng_key, episode)
            playing.append(self.envs.take(job.task))
            first.append(playing[episode].reset(rng))
            draws.append(rng.standard_normal(shape, np.float32))
            yield False
        obs, going = np.stack(first), list(range(job.episodes))
        tests = [env.success_tests for env in playing if isinstance(env, HasSuccessTests)]
        for noise in np.stack(draws, 1):
            if not going:
                break
            actions = np.nan_to_num(actor.act(obs, job.head, noise))
            for episode in tuple(going):
                obs[episode], reward, score, *ends = playing[episode].step(actions[episode])
                self.totals[episode] += reward
                self.scores[episode] = max(self.scores[episode], score)
                if tests:
                    self._count(episode, tests[episode]())
                self.steps += 1
                if any(ends):
                    going.remove(episode)
                yield False
        for env in playing:
            self.envs.give(job.task, env)
        yield True

"""Soft actor-critic for R runs at once. Knows no method: a method changes it through its hooks."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import torch
from torch import Tensor

from cwbench.learner.adam import Adam
from cwbench.learner.architecture import Architecture
from cwbench.learner.compiler import F, compiled
from cwbench.learner.cuda_graph import WARM_UP, CapturedUpdate, side_branch
from cwbench.learner.gradients import sac_gradients
from cwbench.learner.heads import TaskIndex
from cwbench.learner.hooks import CheckedHooks, Hooks, no_global_randomness
from cwbench.learner.losses import SACGradients, autograd_gradients, q_values
from cwbench.learner.networks import Network
from cwbench.learner.parameters import Parameters
from cwbench.learner.replay import Batch, Replay
from cwbench.learner.rng import Streams
from cwbench.learner.runaxis import clip_global_norm
from cwbench.learner.running_means import RunningMeans
from cwbench.spec.config import Gradients, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.spec.schedule import Exploration
from cwbench.spec.segment import Segment
from cwbench.spec.transition import Dims

GROUPS = ("actor", "critic", "log_alpha")  # parameters clipped and optimised apart
SMALL = 15  # runs of a group; more of them keep a GPU busy with one kernel at a time
CHECKED = 2  # updates whose hooks are checked; in the first, a pull to the start has no gradient

# (position, heads, episodes) -> mean return of each head's policy on that task: [R, heads]
TryHeads = Callable[[int, Sequence[int], int], Tensor]


def no_episodes(position: int, heads: Sequence[int], episodes: int) -> Tensor:
    """The default `TryHeads`, where nothing can act."""
    raise RuntimeError("this trainer has no environments to try heads in")


class Trainer(Parameters):
    """Trains R runs at the same position of their sequences."""

    def __init__(
        self,
        seeds: Sequence[int],
        position: int,
        *,
        dims: Dims,
        sac: SACConfig,
        network: NetworkConfig,
        schedule: ScheduleConfig,
        device: torch.device,
        length: int | None = None,
        compiled: bool = False,
        gradients: Gradients = "manual",
        architecture: type[Architecture] | None = None,
    ) -> None:
        super().__init__(
            seeds,
            position,
            dims=dims,
            network=network,
            initial_log_alpha=sac.initial_log_alpha,
            device=device,
            architecture=architecture,
        )
        self.length = length  # of the whole sequence, for methods that need it
        self.dims, self.sac, self.schedule = dims, sac, schedule
        self.streams = Streams(seeds, position, device)
        self.compiled = compiled
        manual = gradients == "manual"
        self._sac_gradients = sac_gradients if manual else autograd_gradients
        self._fast_gradients = self.fast(sac_gradients) if manual else autograd_gradients
        self.updates = 0  # of this segment, retraining included
        self.moving: Collection[str] = GROUPS  # what the current update moves
        self.retrain_updates = 0
        self._retrains: range | None = None  # updates, while a method retrains
        self.warm_up_seconds = 0.0  # of the first updates in this process: compilation, capture
        self._process_updates = 0  # updates in this process
        self.statistics = RunningMeans(self.runs, device)
        entropy = math.log(sac.target_std * math.sqrt(2 * math.pi * math.e))  # of one number
        self.target_entropy = dims.action * entropy
        # Set by `begin`.
        self.method: Hooks
        self.replay: Replay
        self.try_heads: TryHeads
        self.log_retraining: Callable[[int], None]
        self.check_stop: Callable[[], None]

    @classmethod
    def of_segments(
        cls,
        segments: Sequence[Segment],
        *,
        dims: Dims,
        device: torch.device,
        compiled: bool = False,
        gradients: Gradients = "manual",
        architecture: type[Architecture] | None = None,
    ) -> Self:
        """For segments of one group, a run each."""
        return cls(
            **cls.arguments_of(segments),
            dims=dims,
            device=device,
            compiled=compiled,
            gradients=gradients,
            architecture=architecture,
        )

    @staticmethod
    def arguments_of(segments: Sequence[Segment]) -> dict[str, Any]:
        """Arguments of a trainer that the segments of a group decide."""
        first, setup = segments[0], segments[0].setup
        return {
            "seeds": [segment.seed for segment in segments],
            "position": first.position,
            "length": first.length,
            "sac": setup.sac,
            "network": setup.network,
            "schedule": setup.schedule,
        }

    def begin(
        self,
        method: Hooks,
        replay: Replay,
        *,
        inherited: Mapping[str, Tensor] | None = None,
        try_heads: TryHeads = no_episodes,
        log_retraining: Callable[[int], None] = lambda updates: None,
        check_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Get ready to train a task: from the state its parent ended with, or from fresh weights.

        `log_retraining` evaluates between updates without steps and is given their number;
        `check_stop` is called between updates and may raise.
        """
        self.method, self.replay = method, replay
        self.try_heads, self.check_stop = try_heads, check_stop
        self.log_retraining = log_retraining
        self.start(inherited)

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Continue with other parameters, and without the optimiser's memory of these."""
        super().load(state)
        self.reset_optimizer()

    # Optimiser

    def reset_optimizer(self) -> None:
        # What an update without the actor moves, and the rest, count their steps apart.
        parts: list[list[str]] = []
        if self.sac.actor_every > 1:
            critic = self.group("critic")
            parts = [critic, [name for name in self.trained if name not in critic]]
        self.optimizer = Adam(self.trained, lr=self.sac.lr, eps=self.sac.adam_eps, parts=parts)
        self.recapture()

    # One update

    def train(self, updates: int) -> None:
        end = self.updates + updates
        while self.updates < end:
            self.check_stop()
            self.streams.seek(self.updates)
            start = time.monotonic()
            moves_actor = (self.updates + 1) % self.sac.actor_every == 0
            captured = self.captured if moves_actor else self.captured_critic
            count = captured.replay(self._next_pause(end)) if captured else 0
            if not count:
                update = self.update if moves_actor else self.critic_update
                update() if self._process_updates >= CHECKED else self.checked(update)
                count = 1
            if self._process_updates <= WARM_UP:  # these wait for compilation and capture
                self.warm_up_seconds += time.monotonic() - start
            self._process_updates += count
            self.updates += count
            self.statistics.count += count
            if self.method.interval and self.updates % self.method.interval == 0:
                self._at_interval()

    @torch.no_grad()
    def _at_interval(self) -> None:
        self.streams.seek(self.updates - 1)  # captured updates leave it behind the last one
        captured = self.captured_interval if self.method.captures_interval else None
        if captured and captured.replay(1):
            return
        first = self.updates == self.method.interval
        with no_global_randomness(self.method, "at_interval") if first else nullcontext():
            self.method.at_interval()

    def _next_pause(self, end: int) -> int:
        """Updates until `end`, or until another kind of update or the method's turn."""
        if self.sac.actor_every > 1:
            return 1
        left, interval = end - self.updates, self.method.interval
        return min(left, interval - self.updates % interval) if interval else left

    def retrain(
        self, updates: int, update: Callable[[], None] | None = None, *, log_every: int = 0
    ) -> None:
        """Updates that a method makes at a task's end, SAC's or its own; counted apart.

        Before every `log_every` of them all tasks are evaluated; the task's own evaluation follows
        the last.
        """
        self._retrains = range(self.updates, self.updates + updates)
        for start in range(0, updates, log_every or max(updates, 1)):
            count = min(log_every or updates, updates - start)
            if log_every:
                self.log_retraining(start)
            if update is None:
                self.recapture()
                self.train(count)
            else:
                self._repeat(update, count)
        self.retrain_updates += updates
        self._retrains = None

    @property
    def retraining(self) -> tuple[int, int] | None:
        """Updates made and asked for, while a method retrains."""
        asked = self._retrains
        return None if asked is None else (self.updates - asked.start, len(asked))

    def _repeat(self, update: Callable[[], None], updates: int) -> None:
        captured = self._captured(update)
        end = self.updates + updates
        while self.updates < end:
            self.check_stop()
            self.streams.seek(self.updates)
            count = captured.replay(end - self.updates) if captured else 0
            if not count:
                update()
            self.updates += count or 1

    def recapture(self) -> None:
        """Discard what was captured: a tensor that it reads or writes has been replaced."""
        self.captured = self._captured(self.update)
        self.captured_critic = self._captured(self.critic_update)
        self.captured_interval = self._captured(lambda: self.method.at_interval())

    def _captured(self, update: Callable[[], None]) -> CapturedUpdate | None:
        return CapturedUpdate(update, self.streams) if self.device.type == "cuda" else None

    def checked(self, update: Callable[[], None]) -> None:
        """An update that checks what the method's hooks return; the first ones of a process."""
        method = self.method
        kept = {"params": self.params, "target": self.target, "value": self.value}
        self.method = CheckedHooks(method, self.runs, self.trained, self.streams, kept)
        try:
            update()
        finally:
            self.method = method

    def update(self) -> None:
        """Move critics, actor and temperature."""
        self._update(GROUPS)

    def critic_update(self) -> None:
        """Move the critics only: with `actor_every` n, n - 1 of n updates are such."""
        self._update(("critic",))

    def _update(self, groups: Collection[str]) -> None:
        self.moving = groups
        batch = self.method.sample_batch(self.sac.batch_size)
        computed, penalty = self._gradients(batch)
        self.statistics.add(computed.losses.statistics(penalty))
        self.apply(self._moved(computed.grads))
        if "actor" in groups:
            self._repeat_actor(batch)
        with torch.no_grad():
            self.method.after_update(batch, computed.targets)

    def _gradients(self, batch: Batch, draw: str = "") -> tuple[SACGradients, Tensor]:
        """SAC's gradients with the method's changes, and its penalty [R]."""
        beside = self._beside()  # made before the work that it is beside
        computed = self.sac_gradients(batch, draw)
        with beside:
            penalty = self.method.actor_penalty(batch) + self.method.critic_penalty(batch)
            added = self._penalty_gradients(penalty)
        if added:
            torch._foreach_add_([computed.grads[name] for name in added], list(added.values()))
        self.method.adjust_gradients(computed.grads)
        return computed, penalty

    def _repeat_actor(self, batch: Batch) -> None:
        """Make up for the updates in which the actor did not move, on the same batch."""
        for repeat in range(1, self.sac.actor_every):
            self.moving = ("actor", "log_alpha")
            computed, _ = self._gradients(batch, f"repeat-{repeat}-")
            self.apply(self._moved(computed.grads))

    def _moved(self, grads: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        if len(self.moving) == len(GROUPS):
            return grads
        return {name: grad for name, grad in grads.items() if name.split(".")[0] in self.moving}

    @torch.no_grad()
    def sac_gradients(self, batch: Batch, draw: str = "") -> SACGradients:
        """SAC's own losses, gradients and targets, all at the same weights, before any changes.

        `draw` names the random numbers: a method's further batches need names of their own.
        """
        noise, next_noise = (self.noise(f"{draw}{name}", batch) for name in ("now", "next"))
        return self._fast_gradients(*self._sac_arguments(batch, noise, next_noise))

    @torch.no_grad()
    def sac_gradients_once(self, batch: Batch, draw: str) -> SACGradients:
        """As `sac_gradients`, but outside updates; not compiled, since that is slow for one."""
        shape = batch.action.shape
        noise, next_noise = (
            self.streams.normal_once(f"{draw}-{name}", shape[1:].numel()).view(shape)
            for name in ("now", "next")
        )
        return self._sac_gradients(*self._sac_arguments(batch, noise, next_noise))

    def _sac_arguments(self, batch: Batch, noise: Tensor, next_noise: Tensor) -> tuple[Any, ...]:
        networks, tables = (self.policy, self.critic), (self.params, self.target, self.value)
        constants = (self.sac.gamma, self.target_entropy)
        return (*networks, *tables, batch, noise, next_noise, *constants)

    def noise(self, name: str, batch: Batch) -> Tensor:
        """Standard normal numbers for the actions of a batch: [R, B, A]."""
        return self.streams.normal(f"noise-{name}", (batch.reward.shape[1], self.dims.action))

    def q(
        self, params: Mapping[str, Tensor], obs: Tensor, action: Tensor, tasks: TaskIndex
    ) -> Tensor:
        """Normalised values of both critics: [R, 2, B]."""
        return q_values(self.critic, params, obs, action, tasks)

    def _beside(self) -> AbstractContextManager[None]:
        """Where penalties are computed: on CUDA, beside SAC's gradients if these leave it idle.

        Not in the first update, which makes the random blocks that both may read.
        """
        if self.device.type != "cuda" or self.runs > SMALL or not self._process_updates:
            return nullcontext()
        self.streams.fill()
        return side_branch(self.device)

    def _penalty_gradients(self, penalty: Tensor) -> dict[str, Tensor]:
        """By name, of a penalty [R]; empty without one."""
        if not penalty.requires_grad:
            return {}
        # A sum over runs, not a mean: a run's gradient must not depend on how many there are.
        params = self.trained
        found = torch.autograd.grad(penalty.sum(), list(params.values()), allow_unused=True)
        pairs = zip(params, found, strict=True)
        return {name: x for name, x in pairs if x is not None}

    @torch.no_grad()
    def apply(self, grads: Mapping[str, Tensor]) -> None:
        """Move the parameters that have gradients, and the targets with the critics."""
        clip, polyak = self.sac.clip_norm, self.sac.polyak
        named = ([name for name in self.group(group) if name in grads] for group in GROUPS)
        groups = [names for names in named if names]
        if self.compiled and self.device.type == "cuda":
            self.optimizer.fused_step(grads, groups, clip, self.target, polyak)
            return
        if clip:
            for names in groups:
                clip_global_norm([grads[name] for name in names], clip)
        self.optimizer.step(grads)
        if next(iter(self.target)) not in grads:
            return
        online = [self.params[name].detach() for name in self.target]
        torch._foreach_lerp_(list(self.target.values()), online, 1 - polyak)

    # For methods

    def fast(self, function: F) -> F:
        """A pure function of tensors, compiled if this trainer compiles."""
        return compiled(function, self.device.type) if self.compiled else function

    def hidden(self, network: str, batch: Batch) -> list[Tensor]:
        """Outputs of the actor's or the critics' shared layers on a batch: [R, (2,) B, D] each.

        An actor of a method's own need not have any.
        """
        found = self.networks[network]
        if not isinstance(found, Network):
            return []
        inputs = [batch.obs] if network == "actor" else [batch.obs, batch.action]
        return found.hidden(self.params, torch.cat(inputs, -1))

    def uniform_exploration(self) -> Exploration:
        # The reference compares `step <= start_steps`, hence one step more than the option says.
        start = self.schedule.start_steps
        return Exploration(start + 1 if start else 0)

"""Weights that are a function of a method's own parameters: W = f(phi, xi).

The trainer keeps computing gradients of plain weights W, and workers act with plain weights. In
each update the method writes W for a draw xi, pulls W's gradient back to phi, and takes a step of
its own Adam on phi; what the trainer then does to W has no effect.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from cwbench.learner import (
    Adam,
    Batch,
    Method,
    MethodConfig,
    Trainer,
    clip_global_norm,
    like,
    sum_over,
)

GROUPS = ("critic", "actor")
C = TypeVar("C", bound=MethodConfig)
Weights = Mapping[str, Tensor]


class Reparametrised(Method[C]):
    """Base of methods with their own parameters. A head counts as the current task's only.

    `phi` may be empty: then the trainer trains the weights as they are. An entry of phi under a
    weight's name is added to that weight, so that fresh weights can be taken over by it.
    """

    state_names: ClassVar[tuple[str, ...]] = ("phi", "moments")

    def __init__(self, config: C, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.phi: dict[str, Tensor] = {}
        self.moments: dict[str, Tensor] = {}  # of Adam, as a snapshot has them
        self.adam: Adam | None = None

    # What a method says about itself.

    def weights(self) -> Weights:
        """W for this update's draw, by name: tensor code, part of an update."""
        return self.centre()

    def centre(self) -> Weights:
        """W without randomness."""
        raise NotImplementedError

    def pull_back(self, grads: Weights) -> Weights:
        """The gradient of every entry of phi, from those of W: part of an update."""
        raise NotImplementedError

    def group(self, name: str) -> str:
        """The network that an entry of phi moves with, if not all networks move."""
        return "actor"

    def acting(self, position: int) -> Weights:
        """W for acting in a task, as far as it differs from the trainer's weights."""
        return self.centre() if self.phi else {}

    # How that is used.

    def start_phi(self, phi: Weights) -> None:
        """Train these from here on; captured updates refer to the copies made here."""
        self.phi = {name: phi[name].detach().clone() for name in sorted(phi)}
        self._start_adam()
        self.write(self.trainer.params, self.centre())

    def _start_adam(self) -> None:
        sac = self.trainer.sac
        groups = [[name for name in self.phi if self.group(name) == one] for one in GROUPS]
        parts = [names for names in groups if names] if sac.actor_every > 1 else []
        self.adam = Adam(self.phi, lr=sac.lr, eps=sac.adam_eps, parts=parts)
        self.trainer.recapture()

    def begin_task(self, position: int) -> None:
        super().begin_task(position)
        if position and self.config.reset != "none":  # phi takes over what was reset
            for name, w in self.centre().items() if self.phi else ():
                self.phi[name] += self.current(self.trainer.params, name) - w

    def sample_batch(self, size: int) -> Batch:
        if self.phi:
            with torch.no_grad():
                self.write(self.trainer.params, self.weights())
        return super().sample_batch(size)

    @torch.no_grad()
    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        if self.adam is None:
            return
        own = {name: self.current(grads, name) for name in self.phi if name in grads}
        pulled = self.pull_back({name: grad.contiguous() for name, grad in own.items()})
        moved = {k: pulled[k] for k in self.phi if self.group(k) in self.trainer.moving}
        if moved and (clip := self.trainer.sac.clip_norm):
            clip_global_norm(list(moved.values()), clip)
        self.adam.step(moved)
        for grad in own.values():
            grad.zero_()
        if self.trainer.sac.actor_every > 1:  # the actor moves again before the next batch
            self.write(self.trainer.params, self.weights())

    def on_task_end(self, position: int) -> None:
        """Leave the trainer plain weights; moments are of no use to the next task."""
        if self.phi:
            self.write(self.trainer.params, self.centre())
        self.adam = None

    def policy_weights(self, position: int) -> Mapping[str, Tensor]:
        return self.actor_with(self.acting(position), position)

    def actor_with(self, own: Weights, position: int) -> Mapping[str, Tensor]:
        """The actor with some weights replaced, those of heads at a position."""
        weights = self.trainer.actor_params
        for name, w in own.items():
            if name in weights:
                weights[name] = self._with_head(weights[name], name, w, position)
        return weights

    def _with_head(self, x: Tensor, name: str, w: Tensor, position: int) -> Tensor:
        """All heads of a weight, one of them replaced; or the weight itself where it is shared."""
        network = self.trainer.networks[name.split(".")[0]]
        if not network.per_task(name):
            return w
        heads = x.clone()
        heads.select(network.task_axis, position).copy_(w)
        return heads

    def current(self, table: Mapping[str, Tensor], name: str) -> Tensor:
        """A view of a shared weight, or of the current task's head."""
        network, x = self.trainer.networks[name.split(".")[0]], table[name].detach()
        if not network.per_task(name):
            return x
        return x.select(network.task_axis, self.trainer.position)

    def live(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Views of the trainer's weights, of the current task's head where there are heads."""
        return {name: self.current(self.trainer.params, name) for name in names}

    def write(self, table: Mapping[str, Tensor], weights: Weights) -> None:
        """In place: captured updates read from there."""
        for name, w in weights.items():
            self.current(table, name).copy_(w)

    # Snapshots

    def state(self) -> dict[str, Tensor]:
        self.moments = self.adam.state(self.trainer.runs) if self.adam else {}
        return super().state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.phi = {name: self.phi[name] for name in sorted(self.phi)}  # sums have one order
        if self.moments:
            self._start_adam()
            assert self.adam is not None
            self.adam.load(self.moments)


def join(weights: Iterable[Tensor]) -> Tensor:
    """Side by side: [R, ...] each -> [R, n]."""
    return torch.cat([x.flatten(1) for x in weights], 1)


def split(flat: Tensor, like: Weights) -> dict[str, Tensor]:
    """The inverse of `join`: views of [R, n] in the shapes of some weights."""
    parts = torch.split(flat, [x[0].numel() for x in like.values()], 1)
    return {name: part.view_as(x) for part, (name, x) in zip(parts, like.items(), strict=True)}


def weighted_sum(shares: Tensor, vectors: Tensor) -> Tensor:
    """[R, n], [R, n, P] -> [R, P]. One after another: a product of matrices sums in an order that
    depends on how many runs there are."""
    parts = zip(shares.unbind(1), vectors.unbind(1), strict=True)
    return sum_over(like(share, vector) * vector for share, vector in parts)

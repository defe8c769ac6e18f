"""CSP: continual subspace of policies (Gaya et al., ICLR 2023)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cwbench.learner import Batch, MethodConfig, Trainer, like, option
from cwbench.methods._reparametrised import Reparametrised, Weights, join, split, weighted_sum

BIAS = "critic.0.bias"  # where the critics' input of coefficients enters: bias + coefficients U
TINY = 2.0**-25  # half a step of the grid of uniform numbers, so that none is zero
BELOW_ONE = 1 - 2.0**-24  # the largest of them; half a step more would round to one


@dataclass(frozen=True)
class CSPConfig(MethodConfig):
    gain: float = option(0.1, "Share of the return that a new anchor must add to stay.", minimum=0)
    candidates: int = option(
        512,
        "Candidate policies of each kind, with and without the new anchor, ranked by the critic.",
        minimum=1,
        rehearsal=1,
    )
    candidate_states: int = option(256, "Transitions that the critic compares them on.", minimum=1)
    episodes: int = option(
        3, "Episodes of the best policy with it and the best without, which decide.", minimum=1
    )
    evaluate: Literal["best", "drawn"] = option(
        "best",
        "What is evaluated for the task in training: the best policy with the new anchor, by the "
        "critic, or the one that acts.",
        formerly="drawn",
    )


class CSP(Reparametrised[CSPConfig]):
    """Act with convex combinations of anchor actors; add an anchor only where that pays."""

    config_class = CSPConfig
    state_names = (*Reparametrised.state_names, "anchors", "alive", "best", "averaged")

    def __init__(self, config: CSPConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.anchors = torch.zeros(trainer.runs, 0, 0)  # [R, n, P], frozen; zero where dropped
        self.alive = torch.zeros(trainer.runs, 0)  # [R, n], 1 or 0
        self.best = torch.zeros(trainer.runs, 0, 0)  # [R, finished tasks, n], coefficients
        self.averaged: dict[str, Tensor] = {}  # the target critics' bias and U
        self.mix: Tensor  # [R, n + 1], coefficients in this update

    def _actor(self) -> Weights:
        return self.live(self.trainer.group("actor"))

    # Task boundaries

    def on_task_start(self, position: int) -> None:
        if not position:  # one anchor: plain training
            return
        self.trainer.reset(["critic"])
        mean = self.point(self.alive / self.alive.sum(1, keepdim=True))
        critic = {BIAS: self.current(self.trainer.params, BIAS), "U": self._fresh_inputs(position)}
        self.start_phi({**mean, **critic})
        self.averaged = {name: x.clone() for name, x in critic.items()}

    def _fresh_inputs(self, position: int) -> Tensor:
        """Weights of n + 1 more inputs of the critics, as the layer's others: [R, 2, n + 1, D]."""
        twins, inputs, width = self.current(self.trainer.params, "critic.0.weight").shape[1:]
        limit = self.trainer.critic.limit(inputs + position + 1, width)
        shape = (twins, position + 1, width)
        numbers = self.trainer.streams.uniform_once("csp-inputs", math.prod(shape))
        return ((2 * numbers - 1) * limit).view(-1, *shape)

    @torch.no_grad()
    def on_task_end(self, position: int) -> None:
        if position:
            with_new, without = (self._search(new) for new in (1.0, 0.0))
        super().on_task_end(position)
        anchor = join(self._actor().values()).unsqueeze(1)
        one = torch.ones_like(anchor[:, :, 0])
        if not position:
            self.anchors, self.alive, self.best = anchor, one, one.unsqueeze(1)
            return
        self.phi, self.averaged = {}, {}
        self.anchors = torch.cat([self.anchors, anchor], 1)
        self.best = torch.nn.functional.pad(self.best, (0, 1, 0, 1))
        score, other = self._score(with_new), self._score(without)
        # The paper's factor 1 + gain, in a form that holds for negative returns too.
        grows = score > other + self.config.gain * other.abs()
        self.best[:, -1] = torch.where(grows, with_new, without)
        self.alive = torch.cat([self.alive, grows.float()], 1)
        self.anchors[:, -1] = torch.where(grows, self.anchors[:, -1], 0.0)
        self.write(self.trainer.params, self.point(self.best[:, -1]))

    def _search(self, new: float) -> Tensor:
        """The coefficients that the first critic likes best: [R, n + 1]."""
        count, size = self.config.candidates, self.alive.shape[1] + 1
        draws = self.trainer.streams.uniform_once("csp-search", count * size)
        batch = self.trainer.replay.sample_once(self.config.candidate_states, "csp-states")
        share = torch.full_like(draws[:, :1], new)
        mixes = [self.coefficients(draw, share) for draw in torch.split(draws, size, 1)]
        before = {BIAS: self.current(self.trainer.params, BIAS).clone()}
        values = torch.cat([self._value(mix, batch) for mix in mixes], 1)
        self.write(self.trainer.params, before)
        best = values.argmax(1)[:, None, None]  # the first if tied
        return torch.stack(mixes, 1).take_along_dim(best, 1).squeeze(1)

    def _value(self, mix: Tensor, batch: Batch) -> Tensor:
        """[R, 1]"""
        self.write(self.trainer.params, {BIAS: biased(self.phi, mix)})
        q = self.trainer.q(self.trainer.params, batch.obs, batch.action, batch.tasks)
        return q[:, 0].mean(1, keepdim=True)

    def _score(self, mix: Tensor) -> Tensor:
        """Mean return of a policy of the subspace on the task that ends: [R, 1]."""
        self.best[:, -1] = mix
        here = self.trainer.position
        return self.trainer.try_heads(here, [here], self.config.episodes)

    # Points of the subspace

    def point(self, coefficients: Tensor) -> Weights:
        """The sum of anchors, weighted: [R, n] -> an actor."""
        return split(self.trainer.fast(weighted_sum)(coefficients, self.anchors), self._actor())

    def coefficients(self, draw: Tensor, new: Tensor) -> Tensor:
        """Uniform on the simplex of living anchors, the new one with [R, 1] 1 or 0: [R, n + 1]."""
        spread = -(draw + TINY).clamp(max=BELOW_ONE).log() * torch.cat([self.alive, new], 1)
        return spread / spread.sum(1, keepdim=True)

    def _growing_point(self, mix: Tensor) -> Weights:
        """`point` with the anchor that is being trained, too: [R, n + 1] -> an actor."""
        old, new = self.point(mix[:, :-1]), mix[:, -1]
        return {name: x + like(new, x) * self.phi[name] for name, x in old.items()}

    def _draw(self, numbers: Tensor) -> Tensor:
        """Coefficients from [R, n + 2] uniform numbers: half of them without the new anchor."""
        return self.coefficients(numbers[:, 1:], (numbers[:, :1] < 0.5).float())

    def acting(self, position: int) -> Weights:
        if position < self.best.shape[1]:
            return self.point(self.best[:, position])
        if not self.phi:
            return {}
        draw = f"csp-{self.trainer.updates}"
        numbers = self.trainer.streams.uniform_once(draw, self.alive.shape[1] + 2)
        return self._growing_point(self._draw(numbers))

    @torch.no_grad()
    def evaluated_weights(self, position: int) -> Mapping[str, Tensor]:
        in_training = position >= self.best.shape[1] and self.phi
        if not in_training or self.config.evaluate == "drawn":
            return self.policy_weights(position)
        return self.actor_with(self._growing_point(self._search(1.0)), position)

    # One update

    def group(self, name: str) -> str:
        return "critic" if name in (BIAS, "U") else "actor"

    def centre(self) -> Weights:
        """The new anchor itself."""
        return {name: self.phi[name] for name in (*self.trainer.group("actor"), BIAS)}

    def weights(self) -> Weights:
        self.mix = self._draw(self.trainer.streams.uniform("csp", (self.alive.shape[1] + 2,)))
        self.write(self.trainer.target, {BIAS: biased(self.averaged, self.mix)})
        return {**self._growing_point(self.mix), BIAS: biased(self.phi, self.mix)}

    def pull_back(self, grads: Weights) -> Weights:
        new, bias = self.mix[:, -1], grads[BIAS]
        actor = {name: like(new, x) * x for name, x in grads.items() if name != BIAS}
        return {**actor, BIAS: bias, "U": self.mix[:, None, :, None] * bias.unsqueeze(2)}

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        super().adjust_gradients(grads)
        for name, x in self.averaged.items() if "critic" in self.trainer.moving else ():
            x.lerp_(self.phi[name], 1 - self.trainer.sac.polyak)


def biased(tensors: Mapping[str, Tensor], mix: Tensor) -> Tensor:
    """The critics' first bias for some coefficients [R, n]: [R, 2, D]."""
    return tensors[BIAS] + weighted_sum(mix, tensors["U"].movedim(2, 1))

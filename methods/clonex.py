"""ClonEx: behavioural cloning of old policies and best-return exploration (Wolczyk et al. 2022)."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from cwbench.learner import Batch, Exploration, Method, MethodConfig, Trainer, option, per_run_sum
from cwbench.methods._cloning import (
    Direction,
    Reduce,
    extended,
    first_of_each,
    mean_kl,
    record_states,
    sample_states,
)
from cwbench.methods._heads import inherit_best_head


@dataclass(frozen=True)
class ClonExConfig(MethodConfig):
    coef: float = option(100.0, "Weight of cloning the old policies.", minimum=0, per_run=True)
    critic_coef: float = option(0.0, "Weight of cloning the old values.", minimum=0, per_run=True)
    memory_size: int = option(
        10_000, "States kept of each old task.", minimum=1, rehearsal=1, takes_memory=True
    )
    memory: int | None = option(
        None, "States kept of all old tasks together; no limit without it.", minimum=1, added=True
    )
    kl_direction: Direction = option(
        "old_new", "KL(old || new) as in the original, or KL(new || old)."
    )
    kl_reduce: Reduce = option("sum", "Sum, or mean, of the divergence over action dimensions.")
    exploration: Literal["best_return_episode", "copy_best_head"] = option(
        "best_return_episode",
        "Let old heads act during the start steps, or copy the best one and explore no further.",
    )
    selection_episodes: int = option(
        10, "Episodes per old head that choose the one to copy (copy_best_head).", minimum=1
    )
    halve_gradient: bool = option(
        True, "Average the SAC and the cloning gradient, as the original does, instead of adding."
    )


class ClonEx(Method[ClonExConfig]):
    """Clone old policies on a few recorded states; let the best old head explore."""

    config_class = ClonExConfig
    preset = {"clip_norm": 0.1}
    state_names = ("states",)

    def __init__(self, config: ClonExConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.states: dict[str, Tensor] = {}

    @classmethod
    def keeps_critic_with(cls, config: ClonExConfig) -> bool:
        """Old values are cloned in old heads."""
        return config.critic_coef > 0

    def on_task_start(self, position: int) -> None:
        if position and self.config.exploration == "copy_best_head":
            inherit_best_head(self.trainer, ["actor"], self.config.selection_episodes)

    def on_task_end(self, position: int) -> None:
        count = self.config.memory_size
        if self.config.memory is not None:
            count = max(1, min(count, self.config.memory // (position + 1)))
        old = first_of_each(self.states, tasks=position, count=count)
        self.states = extended(old, record_states(self.trainer, count))

    def exploration(self, position: int) -> Exploration:
        uniform = self.trainer.uniform_exploration()
        if not position:
            return uniform
        if self.config.exploration == "copy_best_head":
            return Exploration(0)
        return Exploration(uniform.steps, heads=tuple(range(position)))

    def actor_penalty(self, batch: Batch) -> Tensor:
        if not self.trainer.position:
            return super().actor_penalty(batch)
        states, tasks = sample_states(self.trainer, self.states, self.trainer.sac.batch_size)
        kl = self.trainer.fast(mean_kl)(
            self.trainer.policy,
            self.trainer.params,
            states["obs"],
            tasks,
            states["policy"],
            direction=self.config.kl_direction,
            reduce=self.config.kl_reduce,
        )
        return self.per_run(lambda config: config.coef) * kl

    def critic_penalty(self, batch: Batch) -> Tensor:
        cloned = any(config.critic_coef for config in self.configs)
        if not (self.trainer.position and cloned):
            return super().critic_penalty(batch)
        states, tasks = sample_states(self.trainer, self.states, self.trainer.sac.batch_size)
        q = self.trainer.q(self.trainer.params, states["obs"], states["action"], tasks)
        error = (q - states["q"].movedim(-1, 1)) ** 2  # [R, 2, B]
        return self.per_run(lambda config: config.critic_coef) * per_run_sum(
            error.sum(1) / error.shape[2]
        )

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        if self.trainer.position and self.config.halve_gradient:
            for name in self.trainer.group("actor"):
                grads[name].mul_(0.5)  # quirk: matters only to the clip that follows

"""RECALL: replay with normalised values and distilled policies (Zhang et al., TMLR 2023)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from torch import Tensor

from cwbench.learner import Batch, Exploration, Method, MethodConfig, TaskIndex, Trainer, option
from cwbench.methods._cloning import (
    extended,
    mean_kl,
    record_memory,
    record_states,
    sample_states,
)
from cwbench.methods._heads import inherit_best_head
from cwbench.methods._popart import Stats, update_popart
from cwbench.methods.perfect_memory import REPLAY_BUDGET


@dataclass(frozen=True)
class RecallConfig(MethodConfig):
    distill: bool = option(True, "Keep old policies by distillation.")
    lambda_: float = option(10.0, "Weight of distillation.", minimum=0, per_run=True)
    distill_states: int | None = option(
        None, "States of each old task to distil on; none: all. The release keeps 10000.", minimum=1
    )
    popart: bool = option(True, "Normalise each task's targets by running statistics.")
    beta: float = option(3e-4, "Rate of those statistics.", minimum=0, maximum=1, per_run=True)
    popart_stats: Stats = option(
        "raw", "What the statistics follow: targets, or normalised ones as in the release."
    )
    old_weight: Literal["one", "num_old"] = option(
        "one", "Loss weight of the old half: 1 as in the paper, or the number of old tasks."
    )
    best_return: bool = option(
        True, "Start a task from the old head with the best return, instead of exploring."
    )
    selection_episodes: int = option(10, "Episodes per old head that choose it.", minimum=1)
    memory: int | None = option(**REPLAY_BUDGET)

    def record(self) -> dict[str, Any]:
        """`distill_states` has the key and the values of the first published results."""
        record = super().record()
        states = record.pop("distill_states")
        return record | {"distill_memory": "all" if states is None else str(states)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        values = dict(record)
        states = values.pop("distill_memory")
        return super().from_record(
            values | {"distill_states": None if states == "all" else int(states)}
        )


class Recall(Method[RecallConfig]):
    """Replay old and new data half and half, normalise values, distil old policies."""

    config_class = RecallConfig
    keeps_critic = True
    preset = {"clip_norm": 0.1, "critic_head_layers": 3}
    keeps_replay = True
    state_names = ("states",)

    def __init__(self, config: RecallConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.replay_budget = config.memory
        self.keeps_policy = config.distill and config.distill_states is None
        self.annotation_width = 2 * trainer.dims.action if self.keeps_policy else 0
        self.states: dict[str, Tensor] = {}

    def on_task_start(self, position: int) -> None:
        if position and self.config.best_return:
            inherit_best_head(self.trainer, ["actor", "critic"], self.config.selection_episodes)

    def on_task_end(self, position: int) -> None:
        """Fix what this task's policy is to be distilled to."""
        if self.keeps_policy:
            self.trainer.replay.add_annotations("policy", record_memory(self.trainer))
        elif self.config.distill and self.config.distill_states:
            new = record_states(self.trainer, self.config.distill_states)
            self.states = extended(self.states, {name: new[name] for name in ("obs", "policy")})

    def exploration(self, position: int) -> Exploration:
        if position and self.config.best_return:
            return Exploration(0)
        return self.trainer.uniform_exploration()

    def sample_batch(self, size: int) -> Batch:
        """`size` new transitions and as many old ones: L = L_new + weight * L_old, means each."""
        if not self.trainer.position:
            return self.trainer.replay.sample(size)
        weight = self.trainer.position if self.config.old_weight == "num_old" else 1
        return self.trainer.replay.sample_both(size, weight)

    def actor_penalty(self, batch: Batch) -> Tensor:
        """lambda * KL(pi_now || pi_old) on old states, a mean over states and action dimensions."""
        if not (self.trainer.position and self.config.distill):
            return super().actor_penalty(batch)
        obs, old, tasks = self._old_policies(self.trainer.sac.batch_size)
        # The paper's equation does not say how dimensions are reduced. The release takes the mean,
        # and its lambda was presumably chosen with it: a sum would need lambda / 4.
        trainer = self.trainer
        kl = trainer.fast(mean_kl)(
            trainer.policy, trainer.params, obs, tasks, old, direction="new_old", reduce="mean"
        )
        return self.per_run(lambda config: config.lambda_) * kl

    def _old_policies(self, size: int) -> tuple[Tensor, Tensor, TaskIndex]:
        """Old states and the policies recorded on them."""
        if not self.keeps_policy:
            states, tasks = sample_states(self.trainer, self.states, size)
            return states["obs"], states["policy"], tasks
        old = self.trainer.replay.sample_old(size, "replay-distill")
        return old.obs, self.trainer.replay.annotations_of("policy", old.rows), old.tasks

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        """Temperatures learn from the new half only: each task has its own, the old ones rest."""
        grads["log_alpha"][:, : self.trainer.position].zero_()

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        if self.config.popart:
            update_popart(
                self.trainer,
                batch.tasks,
                targets,
                beta=self.per_run(lambda config: config.beta),
                stats=self.config.popart_stats,
            )

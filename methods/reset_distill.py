"""Reset & Distill (Ahn et al., 2025)."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from cwbench.learner import Exploration, Method, Params, Trainer, option
from cwbench.methods._cloning import extended, mean_kl, record_states, sample_states
from cwbench.methods._distillation import DistillationConfig, distill, imitation


@dataclass(frozen=True)
class ResetDistillConfig(DistillationConfig):
    coef: float = option(1.0, "Weight of cloning the student's old self.", minimum=0, per_run=True)
    memory_size: int = option(
        10_000, "States kept of each old task.", minimum=1, rehearsal=1, takes_memory=True
    )
    expert_steps: int | None = option(
        None,
        "Steps that an expert acts to supply states; none means a tenth of the steps per task.",
        minimum=1,
    )


class ResetDistill(Method[ResetDistillConfig]):
    """Learn each task from scratch, then distill the expert into a student that acts for all."""

    config_class = ResetDistillConfig
    state_names = ("states",)
    experts = "finetuning"

    def __init__(self, config: ResetDistillConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.states: dict[str, Tensor] = {}  # obs and the student's policy: [R, tasks * n, width]
        self.expert: dict[str, Tensor] = {}

    @property
    def expert_steps(self) -> int:
        whole = self.trainer.schedule.steps_per_task
        return min(self.config.expert_steps or max(1, whole // 10), whole)

    def use_expert(self, expert: Mapping[str, Tensor]) -> None:
        self.expert = {name: x.to(self.trainer.device) for name, x in expert.items()}

    def exploration(self, position: int) -> Exploration:
        return Exploration(0)

    def on_task_end(self, position: int) -> None:
        self.trainer.set_parameters(self._distilled() if position else self.expert)
        recorded = record_states(self.trainer, self.config.memory_size)
        new = {name: recorded[name] for name in ("obs", "policy")}
        self.states = extended(self.states, new)

    def _distilled(self) -> dict[str, Tensor]:
        """The student after this task's distillation."""
        coef = self.per_run(lambda config: config.coef)

        def loss(student: Params) -> Tensor:
            new = imitation(self.trainer, student, self.expert, head=0)
            return new + coef * self._drift(student)

        student, updates = self.trainer.actor_params, self.config.distill_updates
        return distill(self.trainer, student, loss, updates)

    def _drift(self, student: Params) -> Tensor:
        """KL(student || its old self) on states of earlier tasks: [R]."""
        states, tasks = sample_states(self.trainer, self.states, self.trainer.sac.batch_size)
        return self.trainer.fast(mean_kl)(
            self.trainer.policy,
            student,
            states["obs"],
            tasks,
            states["policy"],
            direction="new_old",
            reduce="sum",
        )

    def policy_weights(self, position: int) -> Mapping[str, Tensor]:
        """The student; before it has learned the current task, the expert."""
        learned = self.states["obs"].shape[1] // self.config.memory_size if self.states else 0
        return self.trainer.actor_params if position < learned else self._expert_at(position)

    def _expert_at(self, position: int) -> dict[str, Tensor]:
        """The expert, with its head where the student has that position's."""
        trunk = self.trainer.trunk_names("actor")
        weights = {name: self.expert[name] for name in trunk}
        for name, x in self.trainer.actor_params.items():
            if name not in weights:
                axis = self.trainer.task_axis(name)
                weights[name] = x.clone()
                weights[name].select(axis, position).copy_(self.expert[name].select(axis, 0))
        return weights

"""Fine-tuning that keeps a copy of the actor per task: no forgetting by construction."""

from collections.abc import Mapping

from torch import Tensor

from cwbench.learner import Method, MethodConfig, Trainer


class FineTuningN(Method[MethodConfig]):
    """Fine-tuning; each finished task is acted for by the actor as that task left it."""

    state_names = ("kept",)

    def __init__(self, config: MethodConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.kept: dict[str, Tensor] = {}  # `position/name` -> the actor's shared weights then

    def on_task_end(self, position: int) -> None:
        for name in self.trainer.trunk_names("actor"):
            self.kept[f"{position}/{name}"] = self.trainer.params[name].detach().clone()

    def policy_weights(self, position: int) -> Mapping[str, Tensor]:
        """An old task's head gets no gradient any more, so only what is shared is kept."""
        weights = self.trainer.actor_params
        return {name: self.kept.get(f"{position}/{name}", x) for name, x in weights.items()}

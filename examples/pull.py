"""A method of your own in one file: an L2 pull towards the weights that ended the last task.

cwbench run --method examples/pull.py:Pull --seq cw3-1 --protocol smoke --coef 10
"""

from dataclasses import dataclass

from torch import Tensor

from cwbench.learner import Batch, Method, MethodConfig, option, per_run_sum


@dataclass(frozen=True)
class PullConfig(MethodConfig):
    coef: float = option(1.0, "Strength of the pull.", minimum=0, per_run=True)


class Pull(Method[PullConfig]):
    """Pulls the actor's shared layers towards where the previous task left them."""

    config_class = PullConfig
    state_names = ("anchor",)  # kept for the next task and in snapshots

    anchor: dict[str, Tensor] = {}

    def on_task_end(self, position: int) -> None:
        names = self.trainer.trunk_names("actor")
        self.anchor = {name: self.trainer.params[name].detach().clone() for name in names}

    def actor_penalty(self, batch: Batch) -> Tensor:
        penalty = super().actor_penalty(batch)  # zero, one number per run
        for name, old in self.anchor.items():
            penalty = penalty + per_run_sum((self.trainer.params[name] - old) ** 2)
        return self.per_run(lambda config: config.coef) * penalty

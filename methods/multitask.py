"""All tasks at once: what could be reached if there were no sequence."""

from dataclasses import dataclass

from torch import Tensor

from cwbench.learner import Batch, Exploration, Method, MethodConfig, option
from cwbench.methods._popart import update_popart


@dataclass(frozen=True)
class MultitaskConfig(MethodConfig):
    popart: bool = option(True, "Normalise each task's targets by running statistics.")
    beta: float = option(3e-4, "Rate of those statistics.", minimum=0, maximum=1, per_run=True)


class Multitask(Method[MultitaskConfig]):
    """Learn all tasks at once, in as many steps as one after another: an upper bound."""

    config_class = MultitaskConfig
    trains_jointly = True

    def lanes(self, position: int) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(self.trainer.num_tasks)),)

    def exploration(self, position: int) -> Exploration:
        """As many uniform steps for each task as a sequence gives it."""
        return Exploration(self.trainer.num_tasks * self.trainer.uniform_exploration().steps)

    def sample_batch(self, size: int) -> Batch:
        return self.trainer.replay.sample_all(size)

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        if self.config.popart:
            beta = self.per_run(lambda config: config.beta)
            update_popart(self.trainer, batch.tasks, targets, beta=beta, stats="raw")

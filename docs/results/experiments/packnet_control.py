"""PackNet's offline updates without its pruning: what the updates alone do to a task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cwbench.learner import Method, MethodConfig, option


@dataclass(frozen=True)
class ControlConfig(MethodConfig):
    retrain_updates: int = option(100_000, "Updates after a task's last step.", minimum=0)
    retrain_log_every: int = option(5_000, "Evaluate every so many of them.", minimum=1)


class Control(Method[ControlConfig]):
    config_class = ControlConfig
    preset: ClassVar[Mapping[str, Any]] = {"clip_norm": 2e-5}

    def on_task_end(self, position: int) -> None:
        self.trainer.reset_optimizer()
        for start in range(0, self.config.retrain_updates, self.config.retrain_log_every):
            self.trainer.log_retraining(start)
            self.trainer.retrain(self.config.retrain_log_every)

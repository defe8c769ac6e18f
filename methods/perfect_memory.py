"""Perfect Memory: plain SAC on everything ever seen (Wolczyk et al. 2021)."""

from dataclasses import dataclass
from typing import Any, Literal

from cwbench.learner import Batch, Method, MethodConfig, Trainer, option

# An option of methods that keep old transitions.
REPLAY_BUDGET: dict[str, Any] = {
    "default": None,
    "help": "Transitions kept of all old tasks together; none: all.",
    "minimum": 1,
    "added": True,
}


@dataclass(frozen=True)
class PerfectMemoryConfig(MethodConfig):
    replay_mode: Literal["offline", "online"] = option(
        "offline", "Replay stored data of old tasks, or step their environments again."
    )
    memory: int | None = option(**REPLAY_BUDGET)


class PerfectMemory(Method[PerfectMemoryConfig]):
    """Replay all transitions of all tasks, each equally often."""

    config_class = PerfectMemoryConfig
    keeps_critic = True
    preset = {"batch_size": 512}

    def __init__(self, config: PerfectMemoryConfig, trainer: Trainer) -> None:
        super().__init__(config, trainer)
        self.keeps_replay = config.replay_mode == "offline"
        self.replay_budget = config.memory

    def lanes(self, position: int) -> tuple[tuple[int, ...], ...]:
        """Online, each old task is stepped along with the new one and fills its own memory."""
        old = range(position) if self.config.replay_mode == "online" else ()
        return ((position,), *((earlier,) for earlier in old))

    def sample_batch(self, size: int) -> Batch:
        return self.trainer.replay.sample_all(size)

"""New networks for each task, all kept: the control that every transfer is measured against."""

from cwbench.methods.finetuning_n import FineTuningN


class Independent(FineTuningN):
    """Learn each task from scratch, with networks of its own."""

    def on_task_start(self, position: int) -> None:
        """Heads, temperature and optimiser are new at every task anyway."""
        if position:
            self.trainer.reset(("actor", "critic"))

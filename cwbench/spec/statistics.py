"""What evals.csv and train.csv hold; a new statistic of training is also in `Losses.statistics`."""

# The ways to count an episode as solved, and their columns: by the test of Meta-World 3 or V1, at
# any step or at the last. Suites with one test have `successes` only: an episode's largest score.
SUCCESS_COLUMNS = {
    "v3-any": "successes",
    "v3-last": "v3_last",
    "v1-any": "v1_any",
    "v1-last": "v1_last",
}
MORE_SUCCESSES = tuple(name for name in SUCCESS_COLUMNS.values() if name != "successes")

EVAL_COLUMNS = ("step", "eval_position", "eval_task", "episodes", "successes", "mean_return")

# Means over updates. New ones go at the end: snapshots hold them in this order.
STATISTICS = ("actor_loss", "critic_loss", "penalty", "q", "entropy")

TRAIN_COLUMNS = (
    "step",
    "updates",
    "episodes",
    "successes",
    "mean_return",
    *STATISTICS,
    "alpha",
    "value_mean",
    "value_std",
    "seconds",
)


def count_of(success: str | None) -> str:
    """How episodes of an environment with this option `success` count as solved."""
    return "v3-last" if success == "last" else "v3-any"


def success_column(success: str | None) -> str:
    """The column of evals.csv that counts as an environment with this option `success` does."""
    return SUCCESS_COLUMNS[count_of(success)]

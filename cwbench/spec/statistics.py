"""What train.csv says about training; a new statistic is named here and in `Losses.statistics`."""

STATISTICS = ("actor_loss", "critic_loss", "penalty", "q", "entropy")  # means over updates

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

"""Training of R runs at once. What the author of a method needs is exported here."""

from cwbench.learner.adam import Adam
from cwbench.learner.heads import Tasks
from cwbench.learner.method import Method
from cwbench.learner.networks import Params, Policy
from cwbench.learner.replay import Batch
from cwbench.learner.runaxis import clip_global_norm, like, per_run_sum, sum_over
from cwbench.learner.trainer import Trainer
from cwbench.spec.config import MethodConfig
from cwbench.spec.options import option
from cwbench.spec.schedule import Exploration

__all__ = [
    "Adam",
    "Batch",
    "Exploration",
    "Method",
    "MethodConfig",
    "Params",
    "Policy",
    "Tasks",
    "Trainer",
    "clip_global_norm",
    "like",
    "option",
    "per_run_sum",
    "sum_over",
]

"""Training of R runs at once. What the author of a method needs is exported here."""

from cwbench.learner.adam import Adam
from cwbench.learner.architecture import Architecture, fresh_network, network_shapes
from cwbench.learner.diagnostics import activity, dormancy
from cwbench.learner.heads import TaskIndex
from cwbench.learner.method import Method
from cwbench.learner.networks import Network, Params, layer_options
from cwbench.learner.policy import Policy, gaussian_kl, plain_actor
from cwbench.learner.replay import Batch, draw_equally, take_rows
from cwbench.learner.runaxis import clip_global_norm, like, per_run_sum, sum_over
from cwbench.learner.trainer import Trainer
from cwbench.spec import array_layers
from cwbench.spec.config import MethodConfig, NetworkConfig
from cwbench.spec.errors import UserError
from cwbench.spec.options import option
from cwbench.spec.schedule import Exploration

__all__ = [
    "Adam",
    "Architecture",
    "Batch",
    "Exploration",
    "Method",
    "MethodConfig",
    "Network",
    "NetworkConfig",
    "Params",
    "Policy",
    "TaskIndex",
    "Trainer",
    "UserError",
    "activity",
    "array_layers",
    "clip_global_norm",
    "dormancy",
    "draw_equally",
    "fresh_network",
    "gaussian_kl",
    "layer_options",
    "like",
    "network_shapes",
    "option",
    "per_run_sum",
    "plain_actor",
    "sum_over",
    "take_rows",
]

"""cwbench: compare continual-reinforcement-learning methods on Continual World.

The names below load what they need on first use, so `import cwbench` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cwbench.spec.version import __version__

if TYPE_CHECKING:
    from cwbench.experiment.api import Plan, TrainingError, plan, train
    from cwbench.experiment.policy import EvaluationResult, Policy, evaluate, load_policy
    from cwbench.experiment.reporting import report, table
    from cwbench.experiment.runs import Run, Runs, load_runs
    from cwbench.experiment.tuning import Tuned, tune
    from cwbench.learner import Method
    from cwbench.sequences import Sequence
    from cwbench.spec.config import MethodConfig
    from cwbench.spec.errors import UserError
    from cwbench.spec.options import option
    from cwbench.spec.tasks import Task

# Where each name lives.
_HOMES = {
    "EvaluationResult": "cwbench.experiment.policy",
    "Method": "cwbench.learner",
    "MethodConfig": "cwbench.spec.config",
    "Plan": "cwbench.experiment.api",
    "Policy": "cwbench.experiment.policy",
    "Run": "cwbench.experiment.runs",
    "Runs": "cwbench.experiment.runs",
    "Sequence": "cwbench.sequences",
    "Task": "cwbench.spec.tasks",
    "TrainingError": "cwbench.experiment.api",
    "Tuned": "cwbench.experiment.tuning",
    "UserError": "cwbench.spec.errors",
    "evaluate": "cwbench.experiment.policy",
    "load_policy": "cwbench.experiment.policy",
    "load_runs": "cwbench.experiment.runs",
    "option": "cwbench.spec.options",
    "plan": "cwbench.experiment.api",
    "report": "cwbench.experiment.reporting",
    "table": "cwbench.experiment.reporting",
    "train": "cwbench.experiment.api",
    "tune": "cwbench.experiment.tuning",
}

__all__ = [
    "EvaluationResult",
    "Method",
    "MethodConfig",
    "Plan",
    "Policy",
    "Run",
    "Runs",
    "Sequence",
    "Task",
    "TrainingError",
    "Tuned",
    "UserError",
    "__version__",
    "evaluate",
    "load_policy",
    "load_runs",
    "option",
    "plan",
    "report",
    "table",
    "train",
    "tune",
]


if not TYPE_CHECKING:  # so that type checkers know the names above and no others

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'cwbench' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

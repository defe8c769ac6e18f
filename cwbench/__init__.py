"""cwbench: compare continual-reinforcement-learning methods on Continual World.

The names below load what they need on first use, so `import cwbench` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cwbench.spec.version import __version__

if TYPE_CHECKING:
    from cwbench.experiment.policy import EvaluationResult, Policy, evaluate, load_policy
    from cwbench.experiment.runs import Run, Runs, load_runs
    from cwbench.spec.errors import UserError

# Where each name lives.
_HOMES = {
    "EvaluationResult": "cwbench.experiment.policy",
    "Policy": "cwbench.experiment.policy",
    "Run": "cwbench.experiment.runs",
    "Runs": "cwbench.experiment.runs",
    "UserError": "cwbench.spec.errors",
    "evaluate": "cwbench.experiment.policy",
    "load_policy": "cwbench.experiment.policy",
    "load_runs": "cwbench.experiment.runs",
}

__all__ = [
    "EvaluationResult",
    "Policy",
    "Run",
    "Runs",
    "UserError",
    "__version__",
    "evaluate",
    "load_policy",
    "load_runs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cwbench' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Fine-tuning: plain SAC, one task after another."""

from cwbench.learner.method import Method
from cwbench.spec.config import MethodConfig


class FineTuning(Method[MethodConfig]):
    """Plain SAC on each task in turn; nothing is done against forgetting."""

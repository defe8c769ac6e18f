"""Fine-tuning: plain SAC, one task after another."""

from cwbench.learner import Method, MethodConfig


class FineTuning(Method[MethodConfig]):
    """Plain SAC on each task in turn; nothing is done against forgetting."""

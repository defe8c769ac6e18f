"""Fine-tuning: plain SAC, one task after another."""

from cwbench.config import MethodConfig
from cwbench.method import Method


class FineTuning(Method[MethodConfig]):
    """Plain SAC on each task in turn; nothing is done against forgetting."""

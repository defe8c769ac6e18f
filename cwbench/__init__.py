"""cwbench: compare continual-reinforcement-learning methods on Continual World."""

__version__ = "0.1.0"

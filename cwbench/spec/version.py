"""The version of this package, where every layer may read it."""

__version__ = "0.2.0"

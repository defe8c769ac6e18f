"""The version of this package, where every layer may read it."""

__version__ = "0.3.0.dev0"

"""Packages that only some commands need."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cwbench.spec.errors import UserError


def extra(package: str, install: str) -> Any:
    """The package, imported; UserError without it. `install`: what pip is to install."""
    hint = f"pip install '{install}'"
    if not is_installed(package):
        raise UserError(f"{package} is not installed", hint)
    try:
        return import_module(package)
    except ImportError as error:  # it lacks a package of its own
        raise UserError(f"{package} cannot be imported: {error}", hint) from None


def is_installed(package: str) -> bool:
    """A folder of that name in the working directory, without code, could be imported, too."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None

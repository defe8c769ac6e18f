"""Packages that only some commands need."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cwbench.spec.errors import UserError


def extra(package: str, install: str) -> Any:
    """The package, imported; UserError without it. `install`: what pip is to install."""
    check_extra(package, install)
    try:
        return import_module(package)
    except ImportError as error:  # it lacks a dependency
        raise UserError(f"{package} cannot be imported: {error}") from None


def check_extra(package: str, install: str) -> None:
    """UserError where the package is missing; it is not imported, which may take seconds."""
    if not is_installed(package):
        raise UserError(f"{package} is not installed", f"pip install '{install}'")


def is_installed(package: str) -> bool:
    """A folder of that name in the working directory, without code, could be imported, too."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None

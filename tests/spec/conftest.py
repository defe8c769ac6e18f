"""A fixture: cells of a notebook."""

import itertools
import linecache
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def run_cell() -> Iterator[Any]:
    """Runs code as a notebook does: in a module without a file, known to linecache."""
    counter, made = itertools.count(), []

    def run(code: str, *, known: bool = True) -> ModuleType:
        name = f"notebook_{next(counter)}"
        module = sys.modules[name] = ModuleType(name)
        made.append(name)
        file = f"<{name}>"
        if known:
            linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        exec(compile(code, file, "exec"), vars(module))
        return module

    yield run
    for name in made:
        del sys.modules[name]
        linecache.cache.pop(f"<{name}>", None)

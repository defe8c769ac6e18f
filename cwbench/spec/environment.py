"""Environment variables: the folder of the cache, and values for a while."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path


def cache_folder() -> Path:
    """`$CWBENCH_CACHE`, else `cwbench` in the user's cache folder."""
    if chosen := os.environ.get("CWBENCH_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cwbench"


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables inside the block, for processes started there as well."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

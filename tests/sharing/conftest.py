"""One small results folder for all tests of this folder."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def shared_results(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of Perfect Memory, which keeps transitions, on two tasks."""
    root: Path = tmp_path_factory.mktemp("shared") / "results"
    tasks = ("reach-0-1", "reach-2-1")
    toy_run(root, "perfect-memory", seeds=(0, 1), tasks=tasks, diagnostics=True)
    return root

"""`--memory` of Perfect Memory, RECALL and ClonEx: a budget for all old tasks together."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cwbench import methods
from cwbench.planning.sizes import bare_method, replay_bytes
from cwbench.spec.transition import Dims
from cwbench.store import checkpoint

DIMS = Dims(12, 4)


@pytest.mark.parametrize("name", ["perfect-memory", "recall"])
def test_replay_keeps_to_its_budget(name: str, toy_run: Any, tmp_path: Path) -> None:
    store, plan, outcome = toy_run(tmp_path / "small", name, options={"memory": 40})
    assert not outcome.failed
    folders = [store.folder(segment) for segment in plan.segments]
    kept = [np.load(folder.replay / "transitions.npy") for folder in folders]
    assert [len(rows) for rows in kept] == [40, 20, 13]
    whole, all_of_it, _ = toy_run(tmp_path / "whole", name, tasks=("reach-0-1",))
    [first] = all_of_it.segments
    stored = np.load(whole.folder(first).replay / "transitions.npy")
    every = {tuple(row) for row in stored.tolist()}
    assert len({tuple(row) for row in kept[0].tolist()} & every) == 40  # distinct, none made up
    last = plan.segments[-1]
    method_class = methods.load(name)[1].method
    method = bare_method(last, method_class, DIMS)
    used = folders[-1].status()["resources"]["replay_bytes"]
    assert used == replay_bytes([last], method, DIMS)
    own = 60 * 4 * 29  # this task's transitions
    assert used == own + 2 * 20 * 4 * (29 + method.annotation_width)


def test_clonex_keeps_to_its_budget(toy_run: Any, tmp_path: Path) -> None:
    store, plan, _ = toy_run(tmp_path, "clonex", options={"memory": 40, "memory_size": 30})
    states = [checkpoint.load(store.folder(segment).end)[0] for segment in plan.segments]
    sizes = [state["method/states:obs"].shape[1] for state in states]
    assert sizes == [30, 2 * 20, 3 * 13]
    first, second = (state["method/states:obs"] for state in states[:2])
    assert second[:, :20].equal(first[:, :20])  # the first task's states stay
    used = [store.folder(one).status()["resources"]["method_bytes"] for one in plan.segments]
    width = 12 + 4 + 2 * 4 + 2  # observation, action, mean and log-std, two values
    assert used == [4 * width * size for size in sizes]


def test_records_without_a_budget_are_those_of_before() -> None:
    for name in ("perfect-memory", "recall", "clonex"):
        config = methods.METHODS[name].method.config_class
        assert "memory" not in config().record()
        assert config(memory=5).record()["memory"] == 5  # type: ignore[call-arg]

"""What a fleet keeps, against what was counted."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from planned_fleet import ROWS, fleet_of

from cwbench import methods
from cwbench.learner.trainer import Trainer
from cwbench.planning.sizes import (
    ReplayShape,
    bare_method,
    kept_bytes,
    replay_bytes,
    replay_shape,
)
from cwbench.spec.schedule import longest_share
from cwbench.spec.transition import Dims


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("finetuning", {}),
        ("recall", {}),
        ("recall-release", {}),
        ("pm", {"replay_mode": "offline"}),
        ("pm", {"replay_mode": "online"}),
        ("multitask", {}),
    ],
)
def test_replay_takes_what_the_plan_says(
    name: str, options: dict[str, str], toy_run: Any, tmp_path: Path
) -> None:
    store, plan, _ = toy_run(tmp_path, name, options=options)
    for segment in plan.segments:
        trainer = Trainer(
            [0],
            segment.position,
            dims=Dims(12, 4),
            sac=segment.setup.sac,
            network=segment.setup.network,
            schedule=segment.setup.schedule,
            device=torch.device("cpu"),
        )
        method = methods.load(name)[1].method(segment.setup.options, trainer)
        folder = store.folder(segment)
        status = json.loads((folder.path / "status.json").read_text())
        assert status["resources"]["replay_bytes"] == replay_bytes([segment], method, Dims(12, 4))
        if method.keeps_replay:
            files = list(folder.replay.glob("*.npy"))
            headers = 128 * len(files)  # of the format
            on_disk = sum(file.stat().st_size for file in files) - headers
            assert on_disk == kept_bytes(segment, method, Dims(12, 4), segment.position + 1)


def test_tasks_that_take_turns_share_the_steps() -> None:
    assert longest_share(1000, 1, 200) == 1000
    assert longest_share(1800, 3, 200) == 600
    assert longest_share(1000, 3, 200) == 400  # episodes 0 1 2 0 1: two of the first task
    assert longest_share(100, 3, 200) == 100


@pytest.mark.parametrize(("buffer", "rows"), [(700, 700), (2 * ROWS, ROWS)])
def test_a_buffer_smaller_than_a_task_limits_what_is_stored_and_kept(
    buffer: int, rows: int
) -> None:
    """The second task: own transitions and, for both runs of one seed, those of its first task."""
    fleet, kind = fleet_of("pm")
    sac = replace(fleet[0].setup.sac, buffer_size=buffer)
    first = replace(fleet[0], setup=replace(fleet[0].setup, sac=sac))
    method, dims = bare_method(first, kind, Dims(39, 4)), Dims(39, 4)
    assert replay_shape(method, first) == ReplayShape(rows, [1], [0])
    kept = kept_bytes(first, method, dims, 1)
    assert kept == rows * 4 * (dims.width + method.annotation_width)
    other = replace(first, tasks=(*first.tasks[:1], "hammer"))  # begins as the first one
    own = rows * 4 * dims.width
    assert replay_bytes([first], method, dims) == own + kept
    assert replay_bytes([first, other], method, dims) == 2 * own + kept
    third = replace(first, seed=first.seed + 1)
    assert replay_bytes([first, third], method, dims) == 2 * own + 2 * kept

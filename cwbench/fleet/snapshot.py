"""The middle of a segment on disk, exact to the bit.

    state.safetensors                weights, optimiser, method, environments, counts
    replay-<position>-<first>.npy    transitions, in files that are only ever added

The state names what it needs, so files that a crash left behind do no harm. Each run has its own
snapshot and may continue in another fleet.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from cwbench.store import checkpoint

if TYPE_CHECKING:
    from cwbench.fleet.fleet import Fleet

FILES = ("evals.csv", "train.csv")


def save(fleet: Fleet) -> None:
    lanes = fleet.collector.save()
    trainer = fleet.trainer
    state = {
        **fleet.state(),
        **checkpoint.prefixed("optimizer", trainer.optimizer.state(trainer.runs)),
        "statistics": trainer.statistics.T,
    }
    for run, folder in enumerate(fleet.folders):
        place = folder.snapshot.parent
        place.mkdir(exist_ok=True)
        parts = _save_transitions(fleet, run, place)
        own = checkpoint.one_run(state, run)
        for lane in range(len(fleet.lane_positions)):
            arrays = {k: torch.from_numpy(np.array(v)) for k, v in lanes[run, lane].items()}
            own |= checkpoint.prefixed(f"lane{lane}", arrays)
        record = {
            "step": fleet.step,
            "updates": trainer.updates,
            "retrain_updates": trainer.retrain_updates,
            "statistics_count": trainer.statistics_count,
            "seconds": fleet.seconds,
            "counts": vars(fleet.counts[run]),
            "last_success": fleet.last_success[run],
            "diverged": fleet.diverged[run],
            "added": {str(p): n for p, n in trainer.replay.added.items()},
            "parts": parts,
            "files": {name: folder.length(name) for name in FILES},
        }
        checkpoint.save(folder.snapshot, own, record)
    fleet.saved_steps = dict(trainer.replay.added)


def _save_transitions(fleet: Fleet, run: int, place: Path) -> list[str]:
    """Write what is new, and name all files that together hold the memory."""
    replay = fleet.trainer.replay
    names = fleet.snapshot_parts[run]
    for position in replay.live:
        first, rows = replay.since(position, run, fleet.saved_steps.get(position, 0))
        if len(rows):
            name = f"replay-{position}-{first}.npy"
            np.save(place / name, rows.cpu().numpy(), allow_pickle=False)
            names.append(name)
    return names


def restore(fleet: Fleet) -> dict[tuple[int, int], Mapping[str, Any]]:
    """Put a fleet back where its runs' snapshots were taken; returns the states of its lanes."""
    states, records = zip(*(checkpoint.load(f.snapshot) for f in fleet.folders), strict=True)
    record, trainer = records[0], fleet.trainer
    tensors = checkpoint.stack([_without_lanes(state) for state in states])
    trainer.load(checkpoint.under("trainer", tensors))
    trainer.optimizer.load(checkpoint.under("optimizer", tensors))
    trainer.statistics.copy_(tensors["statistics"].T)
    trainer.statistics_count = record["statistics_count"]
    trainer.updates, trainer.retrain_updates = record["updates"], record["retrain_updates"]
    fleet.method.load_state(checkpoint.under("method", tensors))
    fleet.earlier_seconds = max(entry["seconds"] for entry in records)
    fleet.skip_to(record["step"])
    for run, (folder, own) in enumerate(zip(fleet.folders, records, strict=True)):
        for name, length in own["files"].items():
            folder.truncate(name, length)
        vars(fleet.counts[run]).update(own["counts"])
        fleet.last_success[run], fleet.diverged[run] = own["last_success"], own["diverged"]
        fleet.snapshot_parts[run] = own["parts"]
        for name in own["parts"]:
            rows = np.load(folder.snapshot.parent / name, allow_pickle=False)
            position, first = map(int, name.removesuffix(".npy").split("-")[1:])
            trainer.replay.put_back(position, run, first, torch.from_numpy(rows))
    for position, added in record["added"].items():
        trainer.replay.set_added(int(position), added)
    fleet.saved_steps = dict(trainer.replay.added)
    return {
        (run, lane): {k: v.numpy() for k, v in checkpoint.under(f"lane{lane}", state).items()}
        for run, state in enumerate(states)
        for lane in range(len(fleet.lane_positions))
    }


def _without_lanes(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x for name, x in state.items() if not name.startswith("lane")}


def step_of(path: Path) -> int:
    """The step of a snapshot, 0 where there is none: runs at the same step can share a fleet."""
    return int(checkpoint.load_record(path)["step"]) if path.exists() else 0


def discard(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)

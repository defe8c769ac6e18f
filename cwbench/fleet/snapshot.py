"""The middle of a segment on disk. A run continued from it gives bit-identical results.

    state.safetensors                weights, optimiser, method, environments, counts
    replay-<position>-<first>.npy    transitions, in files that are only ever added

The state names the files it needs, so files that a crash left behind do no harm. Each run has its
own snapshot and may continue in another fleet.
"""

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cwbench.fleet.state import GroupState, RunState
from cwbench.learner.method import Method
from cwbench.learner.replay import Replay
from cwbench.learner.trainer import Trainer
from cwbench.rollout.episodes import LaneState
from cwbench.store import checkpoint, files
from cwbench.store.integrity import TABLES, snapshot_parts, table_lengths
from cwbench.store.results import SegmentFolder

LaneStates = Mapping[tuple[int, int], LaneState]  # by run and lane


def tensors(trainer: Trainer, method: Method[Any]) -> dict[str, Tensor]:
    """Everything a child or a continuation starts from: [R, ...] each."""
    return {
        **checkpoint.prefixed("trainer", trainer.state()),
        **checkpoint.prefixed("method", method.state()),
    }


def save(
    state: GroupState,
    trainer: Trainer,
    method: Method[Any],
    *,
    folders: Sequence[SegmentFolder],
    lanes: LaneStates,
) -> None:
    content = {
        **tensors(trainer, method),
        **checkpoint.prefixed("optimizer", trainer.optimizer.state(trainer.runs)),
        "statistics": trainer.statistics.sums.T,
        **{f"acting/{n}": weights for n, weights in enumerate(list(state.acting)[:-1])},
    }
    common = {
        "step": state.step,
        "updates": trainer.updates,
        "retrain_updates": trainer.retrain_updates,
        "statistics_count": trainer.statistics.count,
        "seconds": state.seconds,
        "added": {str(p): n for p, n in trainer.replay.added.items()},
    }
    for run, (folder, run_state) in enumerate(zip(folders, state.runs, strict=True)):
        folder.check_claim()
        folder.snapshot.parent.mkdir(exist_ok=True)
        run_state.snapshot_files |= _save_transitions(
            trainer.replay, run, state.saved_steps, folder.snapshot.parent
        )
        saved = checkpoint.one_run(content, run) | _lane_tensors(lanes, run)
        record = common | _run_record(run_state, folder)
        for path in (folder.path, folder.snapshot.parent):  # names that the state counts on
            files.sync(path)
        checkpoint.save(folder.snapshot, saved, record)
        files.sync(folder.snapshot.parent)
    state.saved_steps = dict(trainer.replay.added)


def _run_record(run: RunState, folder: SegmentFolder) -> dict[str, Any]:
    return {
        "counts": vars(run.counts),
        "last_success": run.last_success,
        "diverged": run.diverged,
        "parts": run.snapshot_files,
        "files": {name: folder.length(name) for name in TABLES},
        "table_checksums": {name: _synced(folder.path / name) for name in TABLES},
    }


def _synced(table: Path) -> str | None:
    """Bring a table to the disk, before the state counts on its rows; its checksum."""
    if not table.exists():
        return None
    files.sync(table)
    return files.checksum(table)


def _lane_tensors(lanes: LaneStates, run: int) -> dict[str, Tensor]:
    named: dict[str, Tensor] = {}
    for (owner, lane), arrays in lanes.items():
        if owner == run:
            copies = {name: torch.from_numpy(np.array(x)) for name, x in arrays.items()}
            named |= checkpoint.prefixed(f"lane{lane}", copies)
    return named


def _save_transitions(
    replay: Replay, run: int, saved_steps: Mapping[int, int], folder: Path
) -> dict[str, str | None]:
    """Write the transitions that are not on disk yet; names and checksums of the new files."""
    names: dict[str, str | None] = {}
    for position in replay.live:
        first, rows = replay.since(position, run, saved_steps.get(position, 0))
        if len(rows):
            file = folder / f"replay-{position}-{first}.npy"
            files.write_array(file, rows.cpu().numpy())
            names[file.name] = files.checksum(file)
    return names


def restore(
    state: GroupState,
    trainer: Trainer,
    method: Method[Any],
    *,
    folders: Sequence[SegmentFolder],
    lanes: int,
) -> LaneStates:
    """Put a group back where its runs' snapshots were taken; returns the states of its lanes."""
    contents, records = zip(*(checkpoint.load(f.snapshot) for f in folders), strict=True)
    stacked = checkpoint.stack([_without_lanes(content) for content in contents])
    _restore_trainer(trainer, stacked, records[0])
    method.load_state(checkpoint.under("method", stacked))
    state.acting.extend(checkpoint.under("acting", stacked).values())
    state.step = records[0]["step"]
    state.earlier_seconds = max(record["seconds"] for record in records)
    for run, (folder, record) in enumerate(zip(folders, records, strict=True)):
        for name, length in table_lengths(record, folder.snapshot).items():
            folder.truncate(name, length)
        _restore_run(state.runs[run], record)
        state.runs[run].snapshot_files = snapshot_parts(record, folder.snapshot)
        parts = state.runs[run].snapshot_files
        _restore_transitions(trainer.replay, run, parts, folder.snapshot.parent)
    for position, added in records[0]["added"].items():
        trainer.replay.set_added(int(position), added)
    state.saved_steps = dict(trainer.replay.added)
    return {
        (run, lane): {k: v.numpy() for k, v in checkpoint.under(f"lane{lane}", content).items()}
        for run, content in enumerate(contents)
        for lane in range(lanes)
    }


def _restore_trainer(
    trainer: Trainer, stacked: Mapping[str, Tensor], record: Mapping[str, Any]
) -> None:
    trainer.load(checkpoint.under("trainer", stacked))
    trainer.optimizer.load(checkpoint.under("optimizer", stacked))
    sums = stacked["statistics"].T
    trainer.statistics.sums.fill_(math.nan)  # of statistics that the snapshot does not know
    trainer.statistics.sums[: len(sums)] = sums
    trainer.statistics.count = record["statistics_count"]
    trainer.updates, trainer.retrain_updates = record["updates"], record["retrain_updates"]


def _restore_run(run: RunState, record: Mapping[str, Any]) -> None:
    vars(run.counts).update(record["counts"])
    run.last_success, run.diverged = record["last_success"], record["diverged"]


def _restore_transitions(replay: Replay, run: int, names: Iterable[str], folder: Path) -> None:
    for name in names:
        rows = np.array(files.read_array(folder / name))
        position, first = map(int, name.removesuffix(".npy").split("-")[1:])
        replay.put_back(position, run, first, torch.from_numpy(rows))


def _without_lanes(content: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: x for name, x in content.items() if not name.startswith("lane")}


def discard(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)

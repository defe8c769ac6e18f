"""Transitions of finished tasks as files: written at a task's end, read when a later one begins."""

from collections.abc import Sequence

import torch

from cwbench.learner.replay import OldTask, Replay
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment
from cwbench.store import files
from cwbench.store.results import SegmentFolder, Store


class MissingReplay(UserError):
    """Transitions of an earlier task are gone, though a segment is to be trained with them."""

    def __init__(self, folder: SegmentFolder) -> None:
        super().__init__(
            f"{folder.replay} is missing, perhaps removed by `cwbench clean`",
            "use another results folder, where it is trained again",
        )


def keep(
    folder: SegmentFolder, replay: Replay, position: int, run: int, limit: int | None = None
) -> None:
    """Write what a run has stored of a live position, or `limit` random rows, with annotations."""
    folder.replay.mkdir(exist_ok=True)
    arrays = {"transitions": replay.stored(position)[run]}
    arrays |= {name: values[run] for name, values in replay.new_annotations.items()}
    if limit is not None:
        rows = replay.shuffled(position)[run, :limit]
        arrays = {name: values[rows.to(values.device)] for name, values in arrays.items()}
    for name, values in arrays.items():
        files.write_array(folder.replay / f"{name}.npy", values.cpu().numpy())


def load(
    store: Store, segments: Sequence[Segment], position: int, limit: int | None = None
) -> OldTask:
    """What the ancestors of some segments kept of an earlier position, each distinct one's once.

    With a limit the kept rows are in random order, so that the first ones are a fair sample.
    """
    ancestors = [segment.ancestor(position) for segment in segments]
    distinct = {segment.id: segment for segment in ancestors}
    slots = list(distinct)
    shards, annotations = [], []
    for segment in distinct.values():
        folder = store.folder(segment)
        arrays = {
            file.stem: torch.from_numpy(files.read_array(file))[:limit]
            for file in sorted(folder.replay.glob("*.npy"))
        }
        if "transitions" not in arrays:
            raise MissingReplay(folder)
        shards.append(arrays.pop("transitions"))
        annotations.append(arrays)
    return OldTask(shards, [slots.index(segment.id) for segment in ancestors], annotations)

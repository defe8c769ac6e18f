"""What a segment takes over from the single-task segment that learned its task.

Until the expert acts in the segment itself, a run's curve is the expert's on the current task. The
policies of earlier tasks do not change meanwhile, so their last evaluation is repeated.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from cwbench.spec.segment import Segment
from cwbench.store import checkpoint
from cwbench.store.results import Store


def actors(store: Store, segments: Sequence[Segment]) -> dict[str, Tensor]:
    """The experts' actors, with one head each: [R, ...]."""
    ends = [
        checkpoint.load(store.folder(segment.expert).end)[0]
        for segment in segments
        if segment.expert is not None
    ]
    state = checkpoint.under("trainer", checkpoint.stack(ends))
    return {name: x for name, x in state.items() if name.startswith("actor.")}


def copy_tables(store: Store, segment: Segment) -> None:
    """Copy the expert's tables but its last evaluation, which this segment makes itself."""
    assert segment.expert is not None
    expert, folder = store.folder(segment.expert).path, store.folder(segment)
    learned = _rows(expert)
    before = [] if segment.parent is None else _rows(store.folder(segment.parent).path)
    columns = [name for name in learned[0] if not before or name in before[0]]
    kept = [row for row in before if int(row["step"]) == segment.steps]
    for row in learned:
        if int(row["step"]) < segment.steps:
            rows = [old | {"step": row["step"]} for old in kept]
            rows.append(row | {"eval_position": str(segment.position)})
            table = [[one[name] for name in columns] for one in rows]
            folder.append("evals.csv", columns, table)
    (folder.path / "train.csv").write_bytes((expert / "train.csv").read_bytes())


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "evals.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))

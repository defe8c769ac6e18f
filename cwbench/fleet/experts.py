"""What a segment takes over from the single-task segment that learned its task.

Until the expert acts in the segment itself, a run's curve is the expert's on the current task. The
policy of earlier tasks does not change meanwhile, so its last evaluation holds for all of them.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from cwbench.spec.segment import Segment
from cwbench.spec.statistics import EVAL_COLUMNS
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
    """Begin evals.csv and train.csv with what the expert's say, without its last evaluation."""
    assert segment.expert is not None
    expert, folder = store.folder(segment.expert).path, store.folder(segment)
    before = [] if segment.parent is None else _rows(store.folder(segment.parent).path)
    last = [row for row in before if int(row[0]) == segment.steps]
    for step, _, *result in _rows(expert):
        if int(step) < segment.steps:
            rows = [[step, *row[1:]] for row in last]
            folder.append("evals.csv", EVAL_COLUMNS, [*rows, [step, segment.position, *result]])
    (folder.path / "train.csv").write_bytes((expert / "train.csv").read_bytes())


def _rows(folder: Path) -> list[list[str]]:
    with (folder / "evals.csv").open(newline="", encoding="utf-8") as stream:
        return [[row[name] for name in EVAL_COLUMNS] for row in csv.DictReader(stream)]

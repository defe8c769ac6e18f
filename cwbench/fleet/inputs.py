"""What segments start from, checked before a fleet is built: one damaged file fails one run."""

from collections.abc import Iterator, Sequence

from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment
from cwbench.store.integrity import check_end, check_links, check_snapshot, snapshot_step
from cwbench.store.results import Store, segment_record


def sort_by_step(
    store: Store, segments: Sequence[Segment]
) -> tuple[dict[int, list[Segment]], dict[Segment, UserError]]:
    """Segments by the step they continue from, and those whose inputs are damaged."""
    steps: dict[int, list[Segment]] = {}
    damaged: dict[Segment, UserError] = {}
    checked: dict[str, UserError | None] = {}  # ancestors, which several runs may share
    for segment in segments:
        folder = store.folder(segment)
        errors = (_check_ancestor(store, one, checked) for one in _ancestors(segment))
        try:
            if error := next(filter(None, errors), None):
                raise error
            check_links(folder)
            segment_record(store.root, folder.path / "segment.json")
            check_snapshot(folder)
            steps.setdefault(snapshot_step(folder), []).append(segment)
        except UserError as found:  # Unusable, or of a newer version
            damaged[segment] = found
    return steps, damaged


def _ancestors(segment: Segment) -> Iterator[Segment]:
    if segment.expert is not None:
        yield segment.expert
    while segment.parent is not None:
        segment = segment.parent
        yield segment


def _check_ancestor(
    store: Store, segment: Segment, checked: dict[str, UserError | None]
) -> UserError | None:
    if segment.id not in checked:
        checked[segment.id] = None
        try:
            check_end(store.folder(segment))
        except UserError as error:
            checked[segment.id] = error
    return checked[segment.id]

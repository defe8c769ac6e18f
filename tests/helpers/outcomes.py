"""What training has left in a results folder."""

from pathlib import Path

from cwbench.store.status import read_status


def states(root: Path) -> list[str]:
    """Of the segments of the only experiment."""
    [experiment], problems = read_status(root)
    assert not problems
    return [segment.state for segment in experiment.segments]


def outcome_files(root: Path) -> dict[str, bytes]:
    """Evaluations and weights of all segments."""
    names = ("evals.csv", "end.safetensors")
    found = [file for name in names for file in root.glob(f"segments/*/{name}")]
    return {str(file.relative_to(root)): file.read_bytes() for file in found}

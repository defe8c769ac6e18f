"""Results folders to merge."""

from pathlib import Path

from sample_results import small, write_results

from cwbench.store.runs import load_runs


def made(root: Path, method: str, seeds: list[int], upto: float | None = None) -> Path:
    return write_results(
        root, sequence_names=["cw3-1"], settings=[small(method)], seeds=seeds, upto=upto
    )


def evaluations(root: Path) -> set[tuple[object, ...]]:
    columns = ["run", "step", "eval_position", "successes"]
    return set(load_runs(root).evals[columns].itertuples(index=False, name=None))

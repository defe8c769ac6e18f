"""Made-up results folders for the report tests."""

from pathlib import Path

import pytest
from sample_results import METHODS, Diagnosed, singles, small, write_diagnostics, write_results

from cwbench import sequences

TRIPLETS = ("cw3-1", "cw3-2")


@pytest.fixture(scope="session")
def triplets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six methods on two triplets with their single-task references, five seeds each."""
    root = tmp_path_factory.mktemp("triplets") / "results"
    write_results(root, sequence_names=TRIPLETS, settings=map(small, METHODS))
    tasks = [task for name in TRIPLETS for task in sequences.get(name).tasks]
    return write_results(
        root, sequence_names=singles(tasks), settings=[small("finetuning")], name="reference"
    )


def diagnosed(method: str, seed: int, position: int) -> Diagnosed:
    """20 % + 10 % per task + 1 % per seed of dormant units; KL 1, 2, ... from earlier policies."""
    share = 0.1 + 0.1 * position + 0.01 * seed
    found = {("dormant", "actor.0"): share, ("dormant", "actor.1"): share + 0.2}
    found |= {("kl", str(earlier)): 1.0 + earlier for earlier in range(position)}
    if method == "recall" and position:
        found["gradient_cosine", "critic"] = -0.5
    return found


@pytest.fixture(scope="session")
def with_diagnostics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fine-tuning and RECALL on a triplet with known diagnostics, EWC without, three seeds."""
    root = tmp_path_factory.mktemp("diagnosed") / "results"
    settings = [small("finetuning"), small("recall")]
    write_results(root, sequence_names=["cw3-1"], settings=settings, seeds=range(3))
    write_diagnostics(root, diagnosed)
    return write_results(
        root, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=range(3), name="plain"
    )

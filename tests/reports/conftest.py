"""Made-up results folders for the report tests."""

from pathlib import Path

import pytest
from sample_results import METHODS, singles, small, write_results

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

"""Made-up results folders for the report tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for sample_results, which docs/ uses too

from sample_results import METHODS, singles, small, write_results  # noqa: E402

from cwbench import sequences  # noqa: E402

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

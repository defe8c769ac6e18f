"""Made-up results folders for the report tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_results import (
    METHODS,
    Diagnosed,
    add_counts,
    singles,
    small,
    write_diagnostics,
    write_results,
    write_set,
)

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import reference
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.store import tuning

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


@pytest.fixture(scope="session")
def study(triplets: Path) -> Study:
    """The same, read once; only to be looked at."""
    return build.read(triplets)


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


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """Perfect Memory on three pairs of three tasks, three seeds."""
    root = tmp_path_factory.mktemp("pairs")
    names = ("pair-0-1", "pair-1-0", "pair-2-2")
    write_results(root, sequence_names=names, settings=[small("perfect_memory")], seeds=range(3))
    study = build.read(root)
    return Scores(study, study.protocols[0])


TUNING = {
    "method": "ewc",
    "options": {"coef": 10.0, "layers": [64]},
    "on": ["cw3-1"],
    "rule": "highest mean area",
    "protocol": "paper",
    "runs": 8,
    "steps": 240_000,
    "settings": [
        {"options": {"coef": coef, "layers": [width]}, "runs": 2}
        | {"score": score, "low": score - 0.1, "high": score + 0.1}
        for coef, width, score in ((10.0, 64, 0.6), (10.0, 8, 0.4), (1.0, 64, 0.3), (1.0, 8, 0.1))
    ],
}


@pytest.fixture(scope="session")
def with_orders(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """EWC in three orders of ten tasks, two seeds, with a choice of options."""
    root = tmp_path_factory.mktemp("orders")
    names = ["orders-cw10-1", "orders-cw10-2", "orders-cw10-3"]
    write_results(root, sequence_names=names, settings=[small("ewc")], seeds=range(2))
    tuning.write(root, TUNING)
    study = build.read(root)
    return Scores(study, study.protocols[0], resamples=50)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only set of reference runs is that of the first triplet's tasks."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr(reference, "shipped_folder", lambda: folder)
    write_set(folder, sequences.get(TRIPLETS[0]).tasks)
    reference.shipped_sets.cache_clear()
    yield folder
    reference.shipped_sets.cache_clear()


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """Two runs, each evaluation counted in four ways."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    add_counts(tmp_path)
    return tmp_path

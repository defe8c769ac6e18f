"""Whatever stands in the place of a file: readers name it, go on, and never use wrong numbers."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from faults import DAMAGE, count, flip, times

from cwbench.spec.errors import UserError
from cwbench.store.cleanup import leftovers
from cwbench.store.integrity import damages, full_check
from cwbench.store.results import Store
from cwbench.store.runs import load_runs
from cwbench.store.status import read_status


@pytest.fixture(scope="module")
def results(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A method that keeps its data, interrupted in the second task: every kind of file."""
    root: Path = tmp_path_factory.mktemp("damage") / "results"
    toy_run(root, "perfect-memory", stop_after=14)
    return root


def kinds(root: Path) -> list[Path]:
    """All files, by their path inside the folder."""
    found = [file.relative_to(root) for file in sorted(root.rglob("*")) if file.is_file()]
    assert len({file.name.split("-")[0] for file in found}) >= 8
    return found


def read_everything(root: Path) -> tuple[pd.DataFrame, list[str]]:
    """All that reads a results folder without training."""
    loaded = load_runs(root)
    _, problems = read_status(root)
    # Reports read all of an experiment's record, and must notice themselves.
    found = damages(root, full_check)
    damaged = [f"{one.file}: {one.reason}" for one in found if one.segment]
    leftovers(root)
    Store(root).newer_schema()
    return loaded.evals, [*loaded.problems, *problems, *damaged]


def rows(table: pd.DataFrame) -> set[str]:
    return set(map(str, table.itertuples(index=False)))  # as text: NaN is not equal to itself


def check(kind: str, root: Path, act: Callable[[], Any], before: pd.DataFrame) -> None:
    """Rows may be missing, which reports show; other rows without a word are wrong."""
    act()
    try:
        evals, problems = read_everything(root)
    except UserError as error:
        count(kind, survived=bool(str(error)))
        return
    silent = not (problems or rows(evals) <= rows(before))
    count(kind, silent=silent)
    assert not silent, (kind, act)


def test_every_kind_of_file_with_every_kind_of_damage(results: Path, tmp_path: Path) -> None:
    before, problems = read_everything(results)
    assert not problems and len(before)
    root = tmp_path / "copy"
    shutil.copytree(results, root)
    for target in (root / file for file in kinds(results)):
        good = target.read_bytes()
        for name, damage in DAMAGE.items():
            check(f"damage: {name}", root, lambda: damage(target), before)  # noqa: B023
            if target.is_dir():
                target.rmdir()
            target.unlink(missing_ok=True)
            target.write_bytes(good)


def flips(results: Path, tmp_path: Path, number: int) -> None:
    rng, before = random.Random(0), read_everything(results)[0]
    root = tmp_path / "copy"
    shutil.copytree(results, root)
    for file in kinds(results):
        good = (root / file).read_bytes()
        for _ in range(number):
            bit = rng.randrange(8 * len(good))
            check("damage: one bit", root, lambda: flip(root / file, bit), before)  # noqa: B023
            (root / file).write_bytes(good)


def test_flipped_bits(results: Path, tmp_path: Path) -> None:
    flips(results, tmp_path, 3)


def test_flipped_bits_in_what_was_asked_for(results: Path, tmp_path: Path) -> None:
    """Another seed or method would be another table, with nothing missing from it."""
    root = tmp_path / "copy"
    shutil.copytree(results, root)
    before = load_runs(root)
    [file] = root.glob("experiments/*.json")
    good, rng = file.read_bytes(), random.Random(0)
    for _ in range(times(100)):
        flip(file, rng.randrange(8 * len(good)))
        found = load_runs(root)
        same = found.runs.equals(before.runs) and rows(found.evals) == rows(before.evals)
        silent = not (found.problems or same)
        count("damage: one bit", silent=silent)
        assert not silent, file.read_bytes()
        file.write_bytes(good)


@pytest.mark.slow
def test_many_flipped_bits(results: Path, tmp_path: Path) -> None:
    flips(results, tmp_path, times(200))

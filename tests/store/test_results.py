"""What training writes into a segment's folder."""

from pathlib import Path

import pytest

from cwbench.spec.source import short_hash
from cwbench.spec.statistics import TRAIN_COLUMNS
from cwbench.store.files import Damaged
from cwbench.store.results import SegmentFolder, Store, read_experiments


def test_rows_fit_the_file_that_they_are_added_to(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("step,alpha\n1,0.5\n")
    SegmentFolder(tmp_path).append("train.csv", TRAIN_COLUMNS, [range(len(TRAIN_COLUMNS))])
    alpha = TRAIN_COLUMNS.index("alpha")
    assert (tmp_path / "train.csv").read_text() == f"step,alpha\n1,0.5\n0,{alpha}\n"


def test_a_status_that_was_edited_is_damaged(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    folder.set_status("running", step=100)
    assert folder.state == "running"
    file = tmp_path / "status.json"
    file.write_text(file.read_text().replace("100", "200"))
    assert folder.state == "damaged"
    with pytest.raises(Damaged, match="checksum"):
        folder.set_status("done")


CHANGED = '{"schema": 1, "name": "b", "runs": []}'  # another name than it was written with


@pytest.mark.parametrize("found", ["", "{", "[]", "{}", CHANGED])
def test_a_damaged_experiment_is_recorded_again(found: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add_experiment({"name": "a", "command": "first", "runs": []})
    [file] = (tmp_path / "experiments").iterdir()
    whole = file.read_text()
    store.add_experiment({"name": "a", "command": "second", "runs": []})
    assert file.read_text() == whole  # the first one stays
    file.write_text(found)
    problems: list[str] = []
    assert not list(read_experiments(tmp_path, problems)) and len(problems) == 1
    store.add_experiment({"name": "a", "command": "first", "runs": []})
    assert file.read_text() == whole


def test_code_is_kept_only_under_its_hash(tmp_path: Path) -> None:
    store, code = Store(tmp_path), b"SCALE = 1\n"
    store.add_source(short_hash(code), code)
    with pytest.raises(Damaged, match="its code is not the one of this name"):
        store.add_source("0123456789ab", code)
    assert [file.name for file in tmp_path.glob("sources/*")] == [f"{short_hash(code)}.py"]

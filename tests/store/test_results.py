"""What training writes into a segment's folder."""

from pathlib import Path

import pytest
from other_user import private
from sample_results import small, write_results

from cwbench.spec.errors import UserError
from cwbench.spec.statistics import TRAIN_COLUMNS
from cwbench.store.files import Damaged
from cwbench.store.results import SegmentFolder, Store, read_experiments
from cwbench.store.runs import load_runs
from cwbench.store.status import read_status


def test_rows_fit_the_file_that_they_are_added_to(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("step,alpha\n1,0.5\n")
    SegmentFolder(tmp_path).append("train.csv", TRAIN_COLUMNS, [range(len(TRAIN_COLUMNS))])
    alpha = TRAIN_COLUMNS.index("alpha")
    assert (tmp_path / "train.csv").read_text() == f"step,alpha\n1,0.5\n0,{alpha}\n"


def test_a_table_shorter_than_its_snapshot_says_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    file.write_text("step\n1\n2\n")
    folder = SegmentFolder(tmp_path)
    with pytest.raises(Damaged, match=r"train\.csv: 9 bytes, expected at least 10"):
        folder.truncate("train.csv", 10)
    folder.truncate("train.csv", 7)
    assert file.read_text() == "step\n1\n"
    folder.truncate("train.csv", 0)
    assert not file.exists()


def test_a_status_that_was_edited_is_damaged(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    folder.set_status("running", step=100)
    assert folder.state == "running"
    file = tmp_path / "status.json"
    file.write_text(file.read_text().replace("100", "200"))
    assert folder.state == "damaged"
    with pytest.raises(Damaged, match="checksum"):
        folder.set_status("done")


def test_a_new_state_keeps_numbers_and_forgets_an_error(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    folder.set_status("failed", step=100, message="odd", error={"type": "ValueError"})
    folder.set_status("pending")
    status = folder.status()
    assert (status["state"], status["step"], status["message"]) == ("pending", 100, "")
    assert "error" not in status


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


def test_another_users_private_segment_is_a_problem(tmp_path: Path) -> None:
    """Not a segment that has not begun."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    [first] = tmp_path.glob("segments/ewc-1-*")
    with private(first):
        for problems in (load_runs(tmp_path).problems, read_status(tmp_path)[1]):
            reason = "not readable for you; ask its owner"
            assert problems == [f"segments/{first.name}/segment.json: {reason}"]


@pytest.mark.parametrize("folder", ["segments", "experiments"])
def test_records_that_may_not_be_listed_are_an_error(folder: str, tmp_path: Path) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    with private(tmp_path / folder):
        for read in (load_runs, read_status, lambda root: Store(root).newer_schema()):
            with pytest.raises(UserError, match=f"{folder}: not readable for you; ask its owner"):
                read(tmp_path)

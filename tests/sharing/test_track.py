"""What trackers receive is what the tables say, once."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from sample_results import change_experiment

import cwbench
from cwbench.sharing import track as tracking
from cwbench.sharing.track import follow, position_names, track
from cwbench.spec.errors import UserError
from cwbench.store.results import SegmentFolder


def rows_sent(results: Path, to: str, project: str = "cwbench") -> int:
    return sum(rows for _, rows in track(results, to, project=project))


class Memory:
    """Remembers what it was sent."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, dict[str, float]]] = {}

    def __call__(self, folder: Path, project: str) -> "Memory":
        return self

    def send(self, run: Any, rows: Any) -> None:
        self.rows.setdefault(run.run, {}).update(rows)


@pytest.fixture
def memory(
    monkeypatch: pytest.MonkeyPatch, shared_results: Path, tmp_path: Path
) -> tuple[Memory, Path]:
    import shutil

    made = Memory()
    monkeypatch.setitem(tracking.TRACKERS, "memory", made)
    return made, Path(shutil.copytree(shared_results, tmp_path / "results"))


def test_every_evaluation_is_sent_once(memory: tuple[Memory, Path]) -> None:
    tracker, results = memory
    assert rows_sent(results, "memory") == 2 * 6  # runs, evaluations
    assert rows_sent(results, "memory") == 0
    runs = cwbench.load_runs(results)
    for one in runs.evaluations.to_dict("records"):
        row = tracker.rows[one["run"]][one["step"]]
        assert row[f"success/{one['task']}"] == one["success_rate"]
        assert row[f"return/{one['task']}"] == one["mean_return"]
    for one in runs.training.to_dict("records"):
        assert tracker.rows[one["run"]][one["step"]]["train/q"] == one["q"]


def test_nothing_is_sent_where_it_cannot_be_noted(memory: tuple[Memory, Path]) -> None:
    tracker, results = memory
    (results / "tracking").write_text("not a folder")
    with pytest.raises(UserError, match=r"is noted in .*tracking is a file, not a folder$"):
        rows_sent(results, "memory")
    assert not tracker.rows


def test_nothing_is_noted_through_a_link(memory: tuple[Memory, Path], tmp_path: Path) -> None:
    tracker, results = memory
    (results / "tracking").symlink_to(tmp_path)
    with pytest.raises(UserError, match="tracking leads out of"):
        rows_sent(results, "memory")
    assert not tracker.rows


def test_a_later_call_sends_only_what_is_new(memory: tuple[Memory, Path]) -> None:
    tracker, results = memory
    notes = results / "tracking" / "memory.json"
    rows_sent(results, "memory")
    sent = json.loads(notes.read_text())["cwbench"]
    first = next(iter(sent))
    notes.write_text(json.dumps({"cwbench": sent | {first: 60}}))  # as if stopped after a task
    tracker.rows.clear()
    assert rows_sent(results, "memory") == 3
    assert min(tracker.rows[first]) > 60 and list(tracker.rows) == [first]


@pytest.mark.parametrize("name", ["evals.csv", "train.csv"])
def test_what_was_damaged_is_sent_when_it_is_right_again(
    memory: tuple[Memory, Path], name: str
) -> None:
    tracker, results = memory
    run = cwbench.load_runs(results)[0]
    table = run.segment_folder(0) / name
    text = table.read_text()
    table.write_text(text[:-4] + "777\n")
    assert rows_sent(results, "memory") == 6 and run.run not in tracker.rows
    table.write_text(text)
    assert rows_sent(results, "memory") == 6
    assert all(len(row) > 3 for row in tracker.rows[run.run].values())


def test_following_ends_with_the_last_run(memory: tuple[Memory, Path]) -> None:
    _, results = memory
    sent = follow(results, "memory", project="x", seconds=60)
    assert [rows for _, rows in sent] == [6, 6]


def test_following_does_not_wait_for_a_damaged_run(
    memory: tuple[Memory, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, results = memory
    min(results.glob("segments/*-2-*/status.json")).write_text("{")

    def wait(seconds: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr("cwbench.sharing.track.time.sleep", wait)
    list(follow(results, "memory", project="x", seconds=60))
    assert sorted(run.state for run in cwbench.load_runs(results)) == ["damaged", "done"]


def test_following_sends_the_last_rows_of_a_run_that_ends_meanwhile(
    memory: tuple[Memory, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in training is sent without its last row, which may be incomplete."""
    tracker, results = memory
    segment = SegmentFolder(min(results.glob("segments/*-2-*")))
    segment.set_status("running")
    send = Memory.send

    def end_and_send(self: Memory, run: Any, rows: Any) -> None:
        segment.set_status("done")
        send(self, run, rows)

    monkeypatch.setattr(Memory, "send", end_and_send)
    sent = follow(results, "memory", project="x", seconds=0)
    assert sorted(rows for _, rows in sent) == [1, 5, 6]
    assert {len(rows) for rows in tracker.rows.values()} == {6}


def test_another_project_gets_everything_again(memory: tuple[Memory, Path]) -> None:
    _, results = memory
    assert rows_sent(results, "memory") == 12
    assert rows_sent(results, "memory", "another") == 12
    assert rows_sent(results, "memory") == 0


def test_what_was_sent_before_a_failure_is_not_sent_again(memory: tuple[Memory, Path]) -> None:
    _, results = memory
    next(track(results, "memory"))  # the network is gone after the first run
    assert rows_sent(results, "memory") == 6


def test_files_for_tensorboard_need_no_torch(shared_results: Path, tmp_path: Path) -> None:
    """Importing it takes seconds, and a minute where many processes wait for two cores."""
    pytest.importorskip("tensorboard")
    import shutil
    import subprocess
    import sys

    results = Path(shutil.copytree(shared_results, tmp_path / "results"))
    code = "import sys; from cwbench.cli import main; main(); "
    code += "print(sorted({'torch', 'tensorflow'} & set(sys.modules)))"
    command = [sys.executable, "-c", code, "track", str(results), "--to", "tensorboard"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["12 rows sent", "[]"]


def test_the_last_row_of_a_run_that_goes_on_waits(memory: tuple[Memory, Path]) -> None:
    """Success and losses of a step are written one after the other."""
    _, results = memory
    for file in results.glob("segments/*-2-*/status.json"):
        file.write_text(json.dumps({"state": "running", "step": 60}))
    assert rows_sent(results, "memory") == 2 * 5


def test_tensorboard_files_hold_the_values(shared_results: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    import shutil
    import warnings

    results = Path(shutil.copytree(shared_results, tmp_path / "results"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        assert rows_sent(results, "tensorboard") == 12
    run = cwbench.load_runs(results)[0]
    [folder] = (results / "tracking" / "tensorboard").glob(f"*{run.segments[-1]}")
    events = EventAccumulator(str(folder)).Reload()
    table = cwbench.load_runs(results).filter(run=run.run).evaluations
    table = table[table["task"] == "reach-0-1"]
    found = [(event.step, event.value) for event in events.Scalars("return/reach-0-1")]
    assert [step for step, _ in found] == table["step"].tolist()
    assert [value for _, value in found] == pytest.approx(table["mean_return"].tolist(), rel=1e-6)


@pytest.mark.slow
def test_wandb_offline_keeps_files_to_sync(
    shared_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    import shutil

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    results = Path(shutil.copytree(shared_results, tmp_path / "results"))
    assert rows_sent(results, "wandb") == 12
    files = list((results / "tracking" / "wandb").glob("offline-run-*/*.wandb"))
    end = time.monotonic() + 60  # another process of wandb writes them
    while any(file.stat().st_size <= 1000 for file in files) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(files) == 2 and all(file.stat().st_size > 1000 for file in files)


def test_trackio_keeps_the_values(
    shared_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    storage = pytest.importorskip("trackio.sqlite_storage").SQLiteStorage
    import shutil

    results = Path(shutil.copytree(shared_results, tmp_path / "results"))
    assert [rows_sent(results, "trackio") for _ in range(2)] == [12, 0]
    runs = cwbench.load_runs(results)
    names = storage.get_runs("cwbench")
    assert len(names) == 2
    for name in names:
        [run] = [one for one in runs if name.endswith(one.segments[-1])]
        table = runs.filter(run=run.run).training
        kept = {row["step"]: row["train/alpha"] for row in storage.get_logs("cwbench", name)}
        assert kept == dict(zip(table["step"], table["alpha"], strict=True))


def test_a_task_that_comes_twice_has_two_curves() -> None:
    assert position_names(("push", "reach", "push")) == ["push-1", "reach", "push-3"]


OUTSIDE = "../../../outside"


def test_a_label_cannot_lead_out_of_the_folder(shared_results: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    results = Path(shutil.copytree(shared_results, tmp_path / "results"))
    for file in list(results.glob("experiments/*.json")):
        change_experiment(file, lambda asked: [run.update(label=OUTSIDE) for run in asked["runs"]])
    with pytest.raises(UserError, match="cannot be a file's name"):
        rows_sent(results, "tensorboard")
    assert not list(tmp_path.rglob("outside*"))

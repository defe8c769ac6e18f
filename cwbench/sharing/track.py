"""Results for experiment trackers, read from the tables that training appends to.

Training knows nothing of it: a results folder can be sent while it grows, afterwards, and again.
What was sent is noted in RESULTS/tracking, so nothing is sent twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from cwbench.experiment.results_folder import check_writable
from cwbench.experiment.runs import Run, Runs, load_runs, read_runs
from cwbench.sharing.services import asking
from cwbench.spec.errors import located
from cwbench.spec.extras import extra
from cwbench.spec.statistics import STATISTICS
from cwbench.store.files import check_output, checked_name, read_json, write_json
from cwbench.store.status import UNFINISHED

Rows = Mapping[int, Mapping[str, float]]  # step -> name -> value


class Tracker(Protocol):
    """Sends the rows of one run."""

    def send(self, run: Run, rows: Rows) -> None: ...


class TensorBoard:
    """Event files in RESULTS/tracking/tensorboard, a folder for each run."""

    def __init__(self, folder: Path, project: str) -> None:
        extra("tensorboard", "tensorboard")
        self.folder = folder / "tensorboard"

    def send(self, run: Run, rows: Rows) -> None:
        # TensorBoard's own writer: torch's has the same format and takes seconds to import.
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        writer = EventFileWriter(str(self.folder / checked_name(_name(run), "run")))
        for step, row in rows.items():
            values = [Summary.Value(tag=tag, simple_value=value) for tag, value in row.items()]
            writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        writer.close()


class WandB:
    """Weights & Biases; WANDB_MODE=offline writes to RESULTS/tracking/wandb instead of sending."""

    def __init__(self, folder: Path, project: str) -> None:
        self.wandb, self.folder, self.project = extra("wandb", "wandb"), folder, project
        self.folder.mkdir(parents=True, exist_ok=True)

    def send(self, run: Run, rows: Rows) -> None:
        session = self.wandb.init(
            project=self.project,
            id=run.segments[-1],
            name=_name(run),
            group=f"{run.label} {run.sequence}",
            config=_config(run),
            dir=str(self.folder),
            resume="allow",
            reinit="finish_previous",
            settings={"x_disable_stats": True},  # of this machine, which need not have trained
        )
        for step, values in rows.items():
            session.log(dict(values), step=step)
        session.finish()


class Trackio:
    """Trackio, a local tracker with wandb's interface."""

    def __init__(self, folder: Path, project: str) -> None:
        self.trackio, self.project = extra("trackio", "trackio"), project

    def send(self, run: Run, rows: Rows) -> None:
        self.trackio.init(
            project=self.project,
            name=_name(run),
            config=_config(run),
            resume="allow",
            auto_log_cpu=False,  # this machine's, which need not have trained
            auto_log_gpu=False,
        )
        for step, values in rows.items():
            self.trackio.log(dict(values), step=step)
        self.trackio.finish()


TRACKERS: dict[str, Callable[[Path, str], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "trackio": Trackio,
}


def _name(run: Run) -> str:
    return f"{run.label}-{run.sequence}-{run.protocol}-s{run.seed}-{run.segments[-1]}"


def _config(run: Run) -> dict[str, Any]:
    names = ("method", "label", "sequence", "protocol", "seed", "tasks", "setup")
    return {name: getattr(run, name) for name in names}


def track(results: Path, to: str, *, project: str = "cwbench") -> Iterator[tuple[Run, int]]:
    """Send what has not been sent yet; each run that had something new, and how many rows."""
    notes = results / "tracking" / f"{to}.json"
    with located(f"what is sent is noted in {notes.parent}"):
        check_writable(check_output(results, notes.parent))
    noted: dict[str, dict[str, int]] = read_json(notes) if notes.exists() else {}
    sent = noted.setdefault(project, {})
    tracker = TRACKERS[to](notes.parent, project)
    runs = load_runs(results)
    table = rows_by_run(runs)
    for run in runs:
        rows = {step: row for step, row in complete(run, table) if step > sent.get(run.run, -1)}
        if rows:
            with asking(to, "what was sent is noted, so the same command continues"):
                tracker.send(run, rows)
            notes.parent.mkdir(parents=True, exist_ok=True)
            sent[run.run] = max(rows)
            write_json(notes, noted)
            yield run, len(rows)


def rows_by_run(runs: Runs) -> dict[str, dict[int, dict[str, float]]]:
    """Success and return of each task, and training statistics: run -> step of the run -> row.

    A run's rows end before a segment with damage: what was sent later could not be put right.
    """
    readable = {run.run: _readable(run, runs.problems) for run in runs}
    rows: dict[str, dict[int, dict[str, float]]] = {}
    names = {
        (run.run, index): name
        for run in runs
        for index, name in enumerate(position_names(run.tasks))
    }
    for one in runs.evaluations.to_dict("records"):
        if one["training_position"] >= readable[one["run"]]:
            continue
        row = rows.setdefault(one["run"], {}).setdefault(int(one["step"]), {})
        name = names.get((one["run"], one["position"]), one["task"])
        row[f"success/{name}"] = float(one["success_rate"])
        row[f"return/{name}"] = float(one["mean_return"])
    for one in runs.training.to_dict("records"):
        if one["position"] >= readable[one["run"]]:
            continue
        row = rows.setdefault(one["run"], {}).setdefault(int(one["step"]), {})
        row |= {f"train/{name}": float(one[name]) for name in (*STATISTICS, "alpha") if name in one}
    return rows


def _readable(run: Run, problems: Sequence[str]) -> int:
    """How many segments there are before the first that a problem names."""
    for position, folder in enumerate(run.folders):
        if folder and any(folder in problem for problem in problems):
            return position
    return len(run.folders)


def position_names(tasks: Sequence[str]) -> list[str]:
    """The task at each position, with its number where a task recurs."""
    return [
        task if tasks.count(task) == 1 else f"{task}-{number}"
        for number, task in enumerate(tasks, start=1)
    ]


def complete(
    run: Run, table: Mapping[str, Mapping[int, dict[str, float]]]
) -> list[tuple[int, dict[str, float]]]:
    """A run's steps in order, without the last one while it trains: it may be incomplete."""
    rows = sorted(table.get(run.run, {}).items())
    return rows if run.state == "done" else rows[:-1]


def follow(results: Path, to: str, *, project: str, seconds: float) -> Iterator[tuple[Run, int]]:
    """Call `track` repeatedly until all runs have ended."""
    while True:
        # Asked before sending: the last rows of a run that ends meanwhile are sent the next time.
        ended = not any(run.state in UNFINISHED for run in read_runs(results, {}, tables=()))
        yield from track(results, to, project=project)
        if ended:
            return
        time.sleep(seconds)

"""What a group writes into its segments' folders: rows of tables, and how far it has come."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cwbench.fleet.state import GroupState
from cwbench.learner.trainer import Trainer
from cwbench.rollout.episodes import EvalResult
from cwbench.spec.segment import Segment
from cwbench.spec.statistics import EVAL_COLUMNS, MORE_SUCCESSES, TRAIN_COLUMNS
from cwbench.store.files import read_json
from cwbench.store.results import RETRAINING, RETRAINING_COLUMNS, SegmentFolder

Provenance = Callable[[Segment], Mapping[str, Any]]
BY_SESSION = ("versions", "machine", "device")


class Records:
    def __init__(
        self,
        segments: Sequence[Segment],
        folders: Sequence[SegmentFolder],
        state: GroupState,
        trainer: Trainer,
        provenance: Provenance = lambda segment: {},
    ) -> None:
        self.segments, self.folders, self.state, self.trainer = segments, folders, state, trainer
        self.provenance = provenance
        self.episodes = segments[0].setup.schedule.eval_episodes

    def begin_session(self) -> None:
        """This process takes the segments over, at the step where they are."""
        began = {"started": time.time(), "started_step": self.state.step}
        for segment, folder in zip(self.segments, self.folders, strict=True):
            status = folder.status()
            earlier = status.get("sessions", status.get("sittings", []))  # the key in version 0.1
            told = {
                "sessions": [*earlier, self.state.step],
                "resumed_with": self._resumed_with(segment, folder),
            }
            steps = {"step": self.state.step, "steps": self.segments[0].steps}
            folder.set_status("running", **steps, **told, retraining=[], **began)

    def _resumed_with(self, segment: Segment, folder: SegmentFolder) -> list[dict[str, Any]]:
        """Code, machine and device of sessions where they are not those of the one before.

        The first session's are in the segment's record.
        """
        found: list[dict[str, Any]] = folder.status().get("resumed_with", [])
        before = found[-1] if found else read_json(folder.path / "segment.json")
        now = {key: value for key, value in self.provenance(segment).items() if key in BY_SESSION}
        if all(before.get(key) == value for key, value in now.items()):
            return found
        return [*found, {"step": self.state.step, **now}]

    def add_evaluation(self, step: int, run: int, results: Sequence[EvalResult]) -> None:
        """All of a run's results at a step: one per position."""
        episodes, tasks = self.episodes, self.segments[run].tasks
        more = MORE_SUCCESSES if any(result.more_successes for result in results) else ()
        rows = [
            (
                *(step, position, tasks[position], episodes, result.successes, result.mean_return),
                *(result.more_successes.get(name, math.nan) for name in more),
            )
            for position, result in enumerate(results)
        ]
        self.folders[run].append("evals.csv", (*EVAL_COLUMNS, *more), rows)
        state = self.state.runs[run]
        state.counts.eval_steps += sum(result.steps for result in results)
        own, env = results[self.segments[0].position], self.segments[0].setup.env
        state.last_success = own.solved(env) / episodes
        self.set_status(run, "diverged" if state.diverged else "running")

    def add_retraining(self, updates: int, run: int, results: Sequence[EvalResult]) -> None:
        """A run's results after some of the updates that its method makes at a task's end."""
        episodes, tasks = self.episodes, self.segments[run].tasks
        rows = [
            (updates, position, tasks[position], episodes, result.successes, result.mean_return)
            for position, result in enumerate(results)
        ]
        self.folders[run].append(RETRAINING, RETRAINING_COLUMNS, rows)
        self.state.runs[run].counts.eval_steps += sum(result.steps for result in results)

    def set_progress(self, retraining: Sequence[int] = ()) -> None:
        """How far the runs are. `retraining`: updates made at the task's end, of how many."""
        for run, state in enumerate(self.state.runs):
            self.set_status(
                run, "diverged" if state.diverged else "running", retraining=list(retraining)
            )

    def add_training_row(self) -> None:
        """What was logged since the last row, for every run."""
        means = self.trainer.statistics.take()
        alpha = self.trainer.params["log_alpha"][:, self.segments[0].position].exp().tolist()
        value_mean, value_std = (self.trainer.current_value(name) for name in ("mean", "std"))
        for run, folder in enumerate(self.folders):
            count = self.state.runs[run].counts
            mean_return = count.returns / count.episodes if count.episodes else float("nan")
            row = (
                self.state.step,
                self.trainer.updates,
                count.episodes,
                count.successes,
                mean_return,
                *(means[name][run] for name in means),
                alpha[run],
                value_mean[run],
                value_std[run],
                round(self.state.seconds, 3),
            )
            folder.append("train.csv", TRAIN_COLUMNS, [row])
            count.episodes, count.successes, count.returns = 0, 0, 0.0

    def set_status(self, run: int, state: str, message: str = "", **further: Any) -> None:
        if state == "diverged":
            message = f"weights are not finite at step {self.state.step}"
        content = {"retraining": [], **self.numbers(run), **further}
        self.folders[run].set_status(state, message=message, **content)

    def numbers(self, run: int) -> dict[str, Any]:
        """How far a run is, and what it has taken."""
        count = self.state.runs[run].counts
        retrained = self.trainer.retrain_updates + (self.trainer.retraining or (0, 0))[0]
        return {
            "step": self.state.step,
            "steps": self.segments[0].steps,
            "seconds": self.state.seconds,
            "warm_up_seconds": self.trainer.warm_up_seconds,
            "success": self.state.runs[run].success,
            "resources": {
                "train_steps": count.train_steps,
                "eval_steps": count.eval_steps,
                "selection_steps": count.selection_steps,
                "extra_steps": count.extra_steps,
                "unstable_episodes": count.unstable_episodes,
                "updates": self.trainer.updates - retrained,
                "retrain_updates": retrained,
                "replay_bytes": self.trainer.replay.bytes // len(self.segments),
                "method_bytes": count.method_bytes,
                "parameters": sum(p[0].numel() for p in self.trainer.params.values()),
            },
        }

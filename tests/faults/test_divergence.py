"""One run of a fleet gets numbers that are not finite: the others do not notice, reports do."""

from pathlib import Path
from typing import Any

import pytest
import torch
from faults import count

import cwbench
from cwbench.cli import main
from cwbench.fleet.group import Group
from cwbench.learner import Method, MethodConfig
from cwbench.reports import build

TASKS = ("reach-0-1", "reach-2-1000")
SMALL: dict[str, Any] = {
    "steps_per_task": 60,
    "eval_every": 30,
    "update_after": 20,
    "start_steps": 20,
    "width": 8,
}


def poison_weights(group: Group, run: int, rows: torch.Tensor) -> None:
    for name, x in group.trainer.params.items():
        if name.startswith("actor."):
            x.data[run] = torch.inf


def poison_critic(group: Group, run: int, rows: torch.Tensor) -> None:
    """As if it had become infinite in the last update, which the actor has not seen."""
    end_task = group.method.end_task

    def poisoned(position: int) -> None:
        end_task(position)
        for name, x in group.trainer.params.items():
            if name.startswith("critic."):
                x.data[run] = torch.inf

    group.method.end_task = poisoned  # type: ignore[method-assign]


def poison_transitions(group: Group, run: int, rows: torch.Tensor) -> None:
    rows[run] = torch.nan


@pytest.fixture(scope="module")
def alone(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    store, plan, _ = toy_run(tmp_path_factory.mktemp("alone"), tasks=TASKS)
    return outcome_files(store, plan)


def outcome_files(store: Any, plan: Any) -> dict[str, bytes]:
    """Of seed 0."""
    folders = [store.folder(segment) for segment in plan.segments if segment.seed == 0]
    return {f"{f.path.name}/{n}": (f.path / n).read_bytes()
            for f in folders for n in ("evals.csv", "end.safetensors")}  # fmt: skip


@pytest.mark.parametrize("poison", [poison_weights, poison_critic, poison_transitions])
def test_a_diverged_run_is_shown_and_harms_no_other(
    poison: Any,
    toy_run: Any,
    alone: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store_chunk = Group._store_chunk

    def poisoned(group: Group, rows: torch.Tensor) -> None:
        if 20 < group.step < 40 and group.position == 0:
            poison(group, [segment.seed for segment in group.segments].index(1), rows)
        store_chunk(group, rows)

    monkeypatch.setattr(Group, "_store_chunk", poisoned)
    store, plan, outcome = toy_run(tmp_path, seeds=(0, 1, 2), tasks=TASKS)
    [diverged] = outcome.diverged
    right = outcome_files(store, plan) == alone
    count(f"divergence: {poison.__name__}", survived=right and "-s1-" in diverged)
    assert right and "-s1-" in diverged and outcome.trained == 4
    main(["status", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "diverged" in shown and "weights are not finite at step" in shown
    [problem] = [one for one in build.read(tmp_path).problems if "diverged" in one]
    assert "seed 1" in problem and "in no mean" in problem


class KeepsInfinity(Method[MethodConfig]):
    """A running minimum that nothing has lowered yet."""

    state_names = ("lowest",)

    def on_task_start(self, position: int) -> None:
        if position == 0:
            self.lowest = torch.full((self.trainer.runs,), torch.inf)


def test_a_method_may_keep_what_is_not_finite(tmp_path: Path) -> None:
    runs = cwbench.train(
        cwbench.plan(
            KeepsInfinity, ["reach-0-1", "reach-2-1"], results=tmp_path, protocol="smoke", **SMALL
        )
    )
    assert [run.state for run in runs] == ["done"]

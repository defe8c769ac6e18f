"""Methods of scripts and of imported files, planned and trained from Python."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cwbench

SMALL: dict[str, Any] = {"protocol": "smoke", "steps_per_task": 90, "eval_every": 45, "width": 8}
SMALL |= {"update_after": 20, "start_steps": 20, "workers": 1, "threads": 1}


SCRIPT = """
import cwbench
import gymnasium


class Mine(cwbench.Method):
    def actor_penalty(self, batch):
        return 0 * super().actor_penalty(batch)


def make(gravity):
    return gymnasium.make("Pendulum-v1", g=gravity)


task = cwbench.Task("mine", make, kwargs={{"gravity": 5.0}}, horizon=20)
runs = cwbench.train(cwbench.plan(Mine, [task], **{options!r}))
print([(run.method, run.state) for run in runs], len(runs.evaluations))
"""


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """With a method and an environment that the script defines."""
    (tmp_path / "script.py").write_text(SCRIPT.format(options=SMALL))
    made = run_python("script.py", cwd=tmp_path)
    assert "[('Mine', 'done')] 2\n" in made.stdout, made.stderr
    assert len(list(tmp_path.glob("results/segments/*"))) == 1


SPAWNED = """
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import cwbench
import gymnasium


class Curve:
    pass


@dataclass
class Schedule:
    curve: Curve


class Mine(cwbench.Method):
    schedule = Schedule

    def actor_penalty(self, batch):
        return 0 * super().actor_penalty(batch)


def make(gravity):
    return gymnasium.make("Pendulum-v1", g=gravity)


def work(train):
    task = cwbench.Task("mine", make, kwargs={{"gravity": 5.0}}, horizon=20)
    plan = cwbench.plan(Mine, [task], **{options!r})
    if not train:
        return plan.segments
    runs = cwbench.train(plan, quiet=True)
    return plan.segments, runs[0].state, cwbench.load_policy(runs[0]).task


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        print(pool.submit(work, True).result() == (work(False), "done", "mine"))
"""


def test_a_scripts_class_has_the_same_ids_in_a_spawned_process(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SPAWNED.format(options=SMALL))
    made = run_python("script.py", cwd=tmp_path)
    assert made.stdout == "True\n", made.stdout + made.stderr


ELSEWHERE = """
import cwbench

class Mine(cwbench.Method):
    interval = 10

small = {options!r}
for call in (
    lambda: cwbench.plan(Mine, ["reach-0-1"], launcher="slurm", **small),
    lambda: cwbench.tune(Mine, ["reach-0-1"], {{"lr": [0.1, 0.2]}}, launcher="ray", **small),
    lambda: cwbench.plan(Mine, ["reach-0-1"], fleets_per_gpu=2, **small),
):
    try:
        call()
    except cwbench.UserError as error:
        print(error)
"""


def test_the_class_of_a_script_is_not_trained_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(ELSEWHERE.format(options=SMALL))
    made = run_python("script.py", cwd=tmp_path)
    lines = made.stdout.splitlines()
    given = ["launcher='slurm'", "launcher='ray'", "fleets_per_gpu=2"]
    assert [line.partition(":")[0] for line in lines] == given, made.stderr
    assert all(": Mine is defined in a script or notebook, so it trains in" in one for one in lines)
    assert not list(tmp_path.glob("results*"))


CODE = """
import cwbench
def plan(method):
    return cwbench.plan(method, ["reach-0-1"], **{options!r})
print(cwbench.train(plan("finetuning"), quiet=True)[0].state)
class Mine(cwbench.Method):
    def actor_penalty(self, batch):
        return 0 * super().actor_penalty(batch)
plan(Mine)
"""


def test_python_c_trains_and_says_what_it_cannot_do(tmp_path: Path) -> None:
    made = run_python("-c", CODE.format(options=SMALL), cwd=tmp_path)
    assert made.stdout == "done\n", made.stderr
    last = made.stderr.splitlines()[-1]
    assert "UserError: the source of Mine.actor_penalty is not available; define" in last


CHANGES = """
import cwbench

SCALE = 0.0


class Mine(cwbench.Method):
    def actor_penalty(self, batch):
        return SCALE * super().actor_penalty(batch)


plan = cwbench.plan(Mine, ["reach-0-1"], **{options!r})
SCALE = 100.0
cwbench.train(plan)
"""


def test_a_method_that_changed_since_it_was_planned_is_not_trained(tmp_path: Path) -> None:
    """Its results would have the ids of the one that was planned."""
    (tmp_path / "script.py").write_text(CHANGES.format(options=SMALL))
    made = run_python("script.py", cwd=tmp_path)
    last = made.stderr.splitlines()[-1]
    assert last.endswith("UserError: Mine has changed since it was planned; plan again")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, cwbench.Plan]:
    """An imported method whose file was edited after it was planned."""
    monkeypatch.syspath_prepend(tmp_path)
    file, name = tmp_path / f"own_{tmp_path.name}.py", f"own_{tmp_path.name}"
    file.write_text("import cwbench\nclass Mine(cwbench.Method): coef = 1\n")
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    monkeypatch.setitem(sys.modules, name, module)
    plan = cwbench.plan(module.Mine, ["reach-0-1"], results=tmp_path / "results", **SMALL)
    file.write_text("import cwbench\nclass Mine(cwbench.Method): coef = 22\n")
    return module, plan


def test_a_file_that_was_reloaded_since_it_was_planned_is_not_trained(
    edited: tuple[ModuleType, cwbench.Plan], tmp_path: Path
) -> None:
    module, plan = edited
    importlib.reload(module)
    with pytest.raises(cwbench.UserError, match="Mine has changed since it was planned"):
        cwbench.train(plan, quiet=True)
    assert not (tmp_path / "results").exists()


def test_a_file_that_was_only_edited_trains_as_it_was_imported(
    edited: tuple[ModuleType, cwbench.Plan], tmp_path: Path
) -> None:
    assert cwbench.train(edited[1], quiet=True)[0].state == "done"
    [kept] = tmp_path.glob("results/sources/*")
    assert "coef = 1\n" in kept.read_text()


OWN_ENV = "from countdown import Countdown\nclass Own(Countdown):\n    later = 1\n"


@pytest.mark.parametrize("edit", ["later = 2", "later = = 1", "pass"])
def test_an_environment_whose_file_was_edited_is_not_trained(
    edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers would import the new code, and its results get the id of the old."""
    name = f"env_{tmp_path.name}"
    file = tmp_path / f"{name}.py"
    file.write_text(OWN_ENV)
    monkeypatch.syspath_prepend(tmp_path)
    task = cwbench.Task("own", importlib.import_module(name).Own, horizon=10)
    plan = cwbench.plan("finetuning", [task], results=tmp_path / "results", **SMALL)
    file.write_text(OWN_ENV.replace("later = 1", edit))
    with pytest.raises(cwbench.UserError, match=rf"{name}:Own has changed since the task was made"):
        cwbench.train(plan, quiet=True)
    assert not (tmp_path / "results").exists()
    file.write_text(OWN_ENV)
    assert cwbench.train(plan, quiet=True)[0].state == "done"


COUNTS = """
import cwbench

SEEN = {{}}


class Mine(cwbench.Method):
    def on_task_start(self, position):
        SEEN[position] = SEEN.get(position, 0) + 1


plan = cwbench.plan(Mine, ["reach-0-1"], **{options!r})
print("1 to train" in repr(plan))
print(cwbench.train(plan, quiet=True)[0].state, cwbench.train(plan, quiet=True)[0].state)
[kept] = cwbench.load_runs(r"{folder}")[0].results.glob("sources/*")
print("SEEN = {{}}" in kept.read_text())
"""


def test_hooks_may_change_values_of_their_script(tmp_path: Path) -> None:
    """The id and the code kept with it are those of the plan."""
    folder = tmp_path / "results"
    options = {**SMALL, "results": str(folder)}
    (tmp_path / "script.py").write_text(COUNTS.format(options=options, folder=folder))
    made = run_python("script.py", cwd=tmp_path)
    assert made.stdout.split() == ["True", "done", "done", "True"], made.stdout + made.stderr

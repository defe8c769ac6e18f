"""Policies of finished runs, in Python: they act as training's evaluations did."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import cwbench
from cwbench import methods
from cwbench.envs.pointmass import PointMass
from cwbench.experiment import build
from cwbench.experiment.policy import _position, _segment
from cwbench.rollout import episodes
from cwbench.spec import notebook_source
from cwbench.spec.source import short_hash
from cwbench.spec.tasks import Task

FIRST, SECOND, THIRD = "reach-0-1", "reach-2-1000", "reach-4-1"


# PackNet acts with masked weights, multi-task learning has one segment for all tasks.
@pytest.mark.parametrize("method", ["finetuning", "packnet", "multitask"])
def test_evaluating_again_gives_the_recorded_numbers(
    method: str, toy_run: Any, tmp_path: Path
) -> None:
    toy_run(tmp_path, method, seeds=(3,))
    [run] = cwbench.load_runs(tmp_path)
    table = cwbench.load_runs(tmp_path).evaluations
    recorded = table[table["step"] == table["step"].max()]
    assert len(recorded) == 3
    for row in recorded.to_dict("records"):
        policy = cwbench.load_policy(run, row["task"])
        found = cwbench.evaluate(policy, row["task"], episodes=row["episodes"])
        assert (found.scores.sum(), found.mean_return) == (row["successes"], row["mean_return"])


def test_evaluations_count_as_the_policys_environment_counts(
    trained: cwbench.Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episodes, "success_column", lambda env: "v3_last")
    for solved in (True, False):
        tests = lambda env, solved=solved: {"v3": solved}  # noqa: E731
        monkeypatch.setattr(PointMass, "success_tests", tests, raising=False)
        assert cwbench.evaluate(cwbench.load_policy(trained[0])).success_rate == solved


def test_a_policy_is_the_one_that_its_method_has_evaluated(toy_run: Any, tmp_path: Path) -> None:
    """Here not the one that acts: another bias of the output layer."""
    (tmp_path / "own.py").write_text(
        "from cwbench.learner import Method\n\nclass Own(Method):\n"
        "    def evaluated_weights(self, position):\n"
        "        weights = dict(self.policy_weights(position))\n"
        "        name = list(weights)[-1]\n"
        "        return weights | {name: weights[name] + 0.5}\n"
    )
    toy_run(tmp_path / "results", f"{tmp_path}/own.py:Own", tasks=(FIRST,))
    own = {"Own": methods.load(f"{tmp_path}/own.py:Own")[1].method}
    runs = cwbench.load_runs(tmp_path / "results", own)
    [row] = runs.evaluations[runs.evaluations["step"] == 60].to_dict("records")
    found = cwbench.evaluate(cwbench.load_policy(runs[0]), episodes=row["episodes"])
    assert found.mean_return == row["mean_return"]


@pytest.fixture(scope="module")
def trained(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> cwbench.Runs:
    """Fine-tuning on three tasks; only to be read."""
    root = tmp_path_factory.mktemp("trained")
    toy_run(root)
    return cwbench.load_runs(root)


def test_a_policy_can_be_taken_from_the_middle_of_a_run(trained: cwbench.Runs) -> None:
    runs = trained
    table = runs.evaluations
    [row] = table[(table["step"] == 120) & (table["position"] == 0)].to_dict("records")
    policy = cwbench.load_policy(runs[0], FIRST, after=SECOND)
    assert repr(policy) == f"<Policy of finetuning, seed 0: {FIRST} after {FIRST}, {SECOND}>"
    assert cwbench.evaluate(policy, episodes=2).mean_return == row["mean_return"]
    others = cwbench.evaluate(policy, episodes=2, seed=7)
    assert others.mean_return != row["mean_return"]
    assert cwbench.evaluate(policy, episodes=2, seed=7).returns.tolist() == others.returns.tolist()
    elsewhere = cwbench.evaluate(policy, THIRD, episodes=2, seed=7)
    assert elsewhere.task == THIRD and elsewhere.mean_return != others.mean_return
    own = cwbench.evaluate(policy, episodes=2, seed=policy.segment.seed)
    assert own.mean_return != row["mean_return"]


def test_a_run_under_way_gives_the_policy_of_its_last_finished_task(trained: cwbench.Runs) -> None:
    run = trained[0]
    begun = replace(run, done=2, folders=(*run.folders[:2], ""))
    policy = cwbench.load_policy(begun)
    assert (policy.task, policy.segment.position) == (SECOND, 1)
    with pytest.raises(cwbench.UserError, match="unknown task"):
        cwbench.load_policy(begun, after=THIRD)


def test_actions_are_drawn_unless_asked_for_the_mean(trained: cwbench.Runs) -> None:
    policy = cwbench.load_policy(trained[0])
    assert policy.task == THIRD and (policy.obs_dim, policy.action_dim) == (12, 4)
    obs = np.zeros((5, 12))
    mean = policy.act(obs, deterministic=True)
    np.testing.assert_allclose(mean, np.tile(mean[0], (5, 1)), rtol=1e-5)  # float32, 5 rows at once
    assert (policy.act(obs) != policy.act(obs)).all()
    one, other = (policy.act(obs, rng=np.random.default_rng(1)) for _ in range(2))
    assert (one == other).all() and (abs(one) <= 1).all()
    np.testing.assert_allclose(policy.act(obs[0], deterministic=True), mean[0], rtol=1e-5)


def test_a_task_may_be_given_as_tables_and_sequences_have_it(trained: cwbench.Runs) -> None:
    last = trained.evaluations["position"].iloc[-1]  # a number of numpy
    tasks: list[Any] = [last, torch.tensor(2), Task(THIRD, "Pendulum-v1"), THIRD, 2]
    for task in tasks:
        assert cwbench.load_policy(trained[0], task).position == 2
        assert cwbench.load_policy(trained[0], 0, after=task).segment.position == 2
    with pytest.raises(cwbench.UserError, match=r"1\.0 is not a task"):
        cwbench.load_policy(trained[0], 1.0)  # type: ignore[arg-type]


def test_a_name_that_occurs_several_times_is_the_last_of_them() -> None:
    assert [_position((FIRST, SECOND, FIRST), task) for task in (FIRST, SECOND, 0)] == [2, 1, 0]


def test_results_of_evaluations_can_be_compared(trained: cwbench.Runs) -> None:
    policy = cwbench.load_policy(trained[0])
    one, other = (cwbench.evaluate(policy, episodes=np.int64(2), seed=np.int64(7)) for _ in "ab")
    assert one == one and one != other and (one.returns == other.returns).all()


def test_bad_input_is_one_line(trained: cwbench.Runs) -> None:
    [run] = trained
    policy = cwbench.load_policy(run)
    wrong: Any = [run]
    runs: Any = trained
    for call, message in (
        (lambda: cwbench.load_policy(run, "reach-0-2"), "did you mean 'reach-0-1'?"),
        (lambda: cwbench.load_policy(run, 3), "no task at position 3; there are 3, from 0"),
        (lambda: cwbench.load_policy(run, THIRD, after=FIRST), "unknown task 'reach-4-1'"),
        (lambda: policy.act(np.zeros(39)), "expected \\[..., 12\\]"),
        (lambda: policy.act("a"), "'a' is not an observation; expected numbers"),
        (lambda: policy.act([0.0] * 12, rng=wrong), "^rng=.* give numpy.random.default_rng"),
        (lambda: cwbench.evaluate(policy, episodes=0), "episodes=0; at least one"),
        (lambda: cwbench.evaluate(policy, episodes=True), "episodes=True; at least one"),
        (lambda: cwbench.evaluate(policy, seed=True), "^seed=True; give a whole number"),
        (lambda: cwbench.evaluate(policy, episodes=wrong), "at least one is needed"),
        (lambda: cwbench.evaluate(policy, seed=wrong), "^seed=.* give a whole number"),
        (
            lambda: cwbench.evaluate(policy, "hammer"),
            "'hammer'; this policy has the tasks of pointmass: reach-0-1",
        ),
        (lambda: cwbench.evaluate(wrong), "is not a policy; give what cwbench.load_policy"),
        (lambda: cwbench.load_policy(wrong), "is not a run; give one of"),
        (lambda: cwbench.load_policy(runs), "is not a run; give one of"),
        (lambda: cwbench.load_policy(run, wrong), "is not a task; give its name or its position"),
        (lambda: cwbench.load_policy(run, after=wrong), "is not a task; give its name"),
        (lambda: cwbench.load_policy(run, True), "True is not a task; give its name"),
        (lambda: cwbench.load_policy(run, torch.ones(9, 9)), "is not a task; give its name"),
        (lambda: cwbench.load_runs(wrong), "is not a results folder; give its path"),
    ):
        with pytest.raises(cwbench.UserError, match=message) as error:
            call()
        assert "\n" not in str(error.value)


def test_a_run_without_a_finished_task_has_no_policy(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path, stop_after=1)
    with pytest.raises(cwbench.UserError, match="has finished no task yet; train it first"):
        cwbench.load_policy(cwbench.load_runs(tmp_path)[0])


OWN = """
from cwbench.learner import Method

class Mine(Method):
    scale = 1

class Other(Method):
    pass
"""


def test_only_the_code_that_trained_a_run_gives_its_policy(toy_run: Any, tmp_path: Path) -> None:
    file, edited = tmp_path / "mine.py", tmp_path / "edited.py"
    file.write_text(OWN)
    edited.write_text(OWN.replace("scale = 1", "scale = 2"))
    toy_run(tmp_path / "results", f"{file}:Mine", tasks=(FIRST,))
    [run] = cwbench.load_runs(tmp_path / "results")
    policy = cwbench.load_policy(run, method=f"{file}:Mine")
    [kept] = (tmp_path / "results" / "sources").iterdir()  # what the message names
    assert cwbench.load_policy(run, method=f"{kept}:Mine").weights.tolist() == list(policy.weights)
    for wrong in (f"{edited}:Mine", f"{file}:Other", "finetuning", cwbench.Method):
        with pytest.raises(cwbench.UserError, match=f"not the code .* sources/{kept.name} of its"):
            cwbench.load_policy(run, method=wrong)


def test_a_method_of_ones_own_is_not_mistaken_for_a_built_in_one(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions trained classes with the names of built-in methods; they stay readable."""
    (tmp_path / "mine.py").write_text(OWN.replace("Mine", "finetuning"))
    with monkeypatch.context() as earlier:
        earlier.setattr(build, "check_outside", lambda *_: None)
        toy_run(tmp_path / "results", f"{tmp_path}/mine.py:finetuning", tasks=(FIRST,))
    runs = cwbench.load_runs(tmp_path / "results")
    assert not runs.problems and len(runs.evaluations) > 0
    with pytest.raises(cwbench.UserError, match=r"not the code .* sources/\w+\.py of its results"):
        cwbench.load_policy(runs[0])
    assert cwbench.load_policy(runs[0], method=f"{tmp_path}/mine.py:finetuning").task == FIRST


CHILD = """
from policy_base import Base

class Child(Base):
    pass
"""
BASE = """
from cwbench.learner import Method

class Base(Method):
    scale = 1
"""


@pytest.fixture
def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a method and, in another file, the class it derives from."""
    (tmp_path / "policy_child.py").write_text(CHILD)
    (tmp_path / "policy_base.py").write_text(BASE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("policy_child", "policy_base"):
        sys.modules.pop(name, None)


def test_a_policy_of_version_0_2_is_read_with_the_file_that_it_recorded(
    two_files: Path, toy_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It recorded the file that was named, without that of the base."""
    file = two_files / "policy_child.py"
    with monkeypatch.context() as earlier:
        for module in (methods, notebook_source):
            earlier.setattr(module, "file_source", lambda cls: CHILD.encode())
        toy_run(two_files / "results", f"{file}:Child", tasks=(FIRST,))
    [run] = cwbench.load_runs(two_files / "results")
    for method in (f"{file}:Child", importlib.import_module("policy_child").Child):
        assert cwbench.load_policy(run, method=method).task == FIRST
    file.write_text(f"{CHILD}    scale = 2\n")
    with pytest.raises(cwbench.UserError, match="not the code of 'Child' that trained this"):
        cwbench.load_policy(run, method=f"{file}:Child")


def test_a_policy_is_read_with_the_kept_source_of_two_files(two_files: Path, toy_run: Any) -> None:
    """The kept file imports the base from where it is: that must still be the one it holds."""
    toy_run(two_files / "results", f"{two_files}/policy_child.py:Child", tasks=(FIRST,))
    [run] = cwbench.load_runs(two_files / "results")
    [kept] = (two_files / "results" / "sources").iterdir()
    assert kept.stem == short_hash(f"{CHILD}\n{BASE}".encode())
    assert cwbench.load_policy(run, method=f"{kept}:Child").task == FIRST
    (two_files / "policy_base.py").write_text(BASE.replace("scale = 1", "scale = 22"))
    importlib.reload(sys.modules["policy_base"])
    for file in (kept, two_files / "policy_child.py"):
        with pytest.raises(cwbench.UserError, match="not the code of 'Child' that trained this"):
            cwbench.load_policy(run, method=f"{file}:Child")


def test_a_file_may_change_while_the_class_that_trained_is_in_memory(
    two_files: Path, toy_run: Any
) -> None:
    toy_run(two_files / "results", f"{two_files}/policy_child.py:Child", tasks=(FIRST,))
    [run] = cwbench.load_runs(two_files / "results")
    trained = importlib.import_module("policy_child").Child
    (two_files / "policy_child.py").write_text(f"{CHILD}    scale = 2\n")
    assert cwbench.load_policy(run, method=trained).task == FIRST


SCRIPT = """
import sys
import cwbench
from cwbench.learner import Method

calls = []

class Mine(Method):
    def on_task_end(self, position):
        calls.append(position)

plan = cwbench.plan(
    Mine, ["reach-0-1"], protocol="smoke", results=sys.argv[1],
    steps_per_task=60, start_steps=20, update_after=20, eval_every=60, workers=1,
)
[run] = cwbench.train(plan, quiet=True)
assert calls, "the method's text is the same, what it uses is not"
print(cwbench.load_policy(run, 0).task)
"""


def test_the_class_of_a_script_may_change_what_it_uses(tmp_path: Path) -> None:
    """Its id, taken again after training, is another one."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", "results"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines()[-1:], done.returncode) == ([FIRST], 0), done.stderr[-500:]


class Still(gymnasium.Env):  # type: ignore[misc]
    """An environment in which nothing happens."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, **kwargs: Any) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 0.0, False, False, {"success": False}


def test_an_environment_that_has_changed_since_training_is_named(tmp_path: Path) -> None:
    """Its policy is in a folder with another id, so it would be called missing."""
    task = cwbench.Task("still", Still, horizon=20)
    plan = cwbench.plan("finetuning", [task], protocol="smoke", results=tmp_path)
    segment = plan.runs[0].segments[0]
    record, method = segment.record(), methods.load("finetuning")[1].method
    assert _segment(record, method) == segment
    record["env"]["tasks"][0]["source"] = "0" * 12  # of other code
    with pytest.raises(cwbench.UserError, match=r":Still here is not the code of task 'still'"):
        _segment(record, method)
    record["env"]["tasks"][0]["callable"] = "__main__:gone"
    with pytest.raises(
        cwbench.UserError, match=r"import '__main__:gone': .*; define it here again"
    ):
        _segment(record, method)

"""Policies of finished runs, in Python: they act as training's evaluations did."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cwbench
from cwbench import methods
from cwbench.experiment import build

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


def test_a_policy_can_be_taken_from_the_middle_of_a_run(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path)
    runs = cwbench.load_runs(tmp_path)
    table = runs.evaluations
    [row] = table[(table["step"] == 120) & (table["position"] == 0)].to_dict("records")
    policy = cwbench.load_policy(runs[0], FIRST, after=SECOND)
    assert repr(policy) == f"<Policy of finetuning, seed 0: {FIRST} after {FIRST}, {SECOND}>"
    assert cwbench.evaluate(policy, episodes=2).mean_return == row["mean_return"]
    others = cwbench.evaluate(policy, episodes=2, seed=7)
    assert others.mean_return != row["mean_return"]
    assert cwbench.evaluate(policy, episodes=2, seed=7).returns.tolist() == others.returns.tolist()


def test_actions_are_drawn_unless_asked_for_the_mean(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path)
    policy = cwbench.load_policy(cwbench.load_runs(tmp_path)[0])
    assert policy.task == THIRD and (policy.obs_dim, policy.action_dim) == (12, 4)
    obs = np.zeros((5, 12))
    mean = policy.act(obs, deterministic=True)
    np.testing.assert_allclose(mean, np.tile(mean[0], (5, 1)), rtol=1e-5)  # float32, 5 rows at once
    assert (policy.act(obs) != policy.act(obs)).all()
    one, other = (policy.act(obs, rng=np.random.default_rng(1)) for _ in range(2))
    assert (one == other).all() and (abs(one) <= 1).all()
    np.testing.assert_allclose(policy.act(obs[0], deterministic=True), mean[0], rtol=1e-5)


def test_bad_input_is_one_line(toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path)
    [run] = cwbench.load_runs(tmp_path)
    policy = cwbench.load_policy(run)
    for call, message in (
        (lambda: cwbench.load_policy(run, "reach-0-2"), "did you mean 'reach-0-1'?"),
        (lambda: cwbench.load_policy(run, 3), "no task at position 3; there are 3, from 0"),
        (lambda: cwbench.load_policy(run, THIRD, after=FIRST), "unknown task 'reach-4-1'"),
        (lambda: policy.act(np.zeros(39)), "expected \\[..., 12\\]"),
        (lambda: cwbench.evaluate(policy, episodes=0), "episodes=0; at least one"),
        (lambda: cwbench.evaluate(policy, "hammer"), "unknown task 'hammer'"),
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

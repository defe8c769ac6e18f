"""The conformance kit finds the mistakes that it is for."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench.experiment.conformance import (
    CHECKS,
    Kit,
    check_method,
    no_state_is_lost,
    require_same,
    run_checks,
)
from cwbench.experiment.conformance import Broken as BrokenContract
from cwbench.rollout.pool import Pool
from cwbench.store.results import Store

HEAD = """
import torch
from cwbench.learner import Method, per_run_sum

class Wrong(Method):
"""
RESCALES = """
    interval = 4
    def at_interval(self):
        self.trainer.replay.stored(self.trainer.position).mul_(0.95)
"""
WRONG = {
    "reads a value": (
        "updates can be captured",
        """
    def adjust_gradients(self, grads):
        if grads["log_alpha"].sum() > 1e9:
            grads["log_alpha"].zero_()
""",
        "reads a tensor's value",
    ),
    "reads a value between updates": (
        "updates can be captured",
        """
    interval = 2
    captures_interval = True
    def at_interval(self):
        self.trainer.params["log_alpha"].max().item()
""",
        "reads a tensor's value",
    ),
    "counts in Python": (
        "updates can be captured",
        """
    count = 0
    def after_update(self, batch, targets):
        self.count += 1
""",
        "an update changes self.count, a Python value",
    ),
    "replaces its state": (
        "updates can be captured",
        """
    state_names = ("mean",)
    def on_task_start(self, position):
        self.mean = torch.zeros(self.trainer.runs)
    def after_update(self, batch, targets):
        self.mean = 0.9 * self.mean + 0.1 * targets.mean(1)
""",
        "an update replaces the tensor mean",
    ),
    "keeps every batch": (
        "updates leave no memory behind",
        """
    def on_task_start(self, position):
        self.seen = []
    def after_update(self, batch, targets):
        self.seen.append(targets.clone())
""",
        "each update leaves 64 bytes allocated",
    ),
    "misspells a hook": (
        "hooks have known names",
        """
    def actor_penality(self, batch):
        return per_run_sum(self.trainer.params["actor.0.weight"] ** 2)
""",
        "nothing uses actor_penality of Wrong; did you mean actor_penalty?",
    ),
    "forgets its anchor": (
        "state reaches the next task",
        """
    anchor = None
    def on_task_end(self, position):
        self.anchor = self.trainer.params["actor.0.weight"].detach().clone()
""",
        "on_task_end changes self.anchor",
    ),
    "collects in a list of the class": (
        "state reaches the next task",
        """
    anchors = []
    def on_task_end(self, position):
        self.anchors.append(self.trainer.params["actor.0.weight"].detach().clone())
""",
        "on_task_end changes self.anchors",
    ),
    "changes a forgotten tensor in place": (
        "state reaches the next task",
        """
    def __init__(self, config, trainer):
        super().__init__(config, trainer)
        self.total = torch.zeros(trainer.runs)
    def on_task_end(self, position):
        self.total += 1
""",
        "on_task_end changes self.total",
    ),
    "keeps a number": (
        "state reaches the next task",
        """
    state_names = ("count",)
    count = 0
    def on_task_end(self, position):
        self.count += 1
""",
        "Wrong.count, named in state_names, is 2; it must be a tensor [R, ...] with R = 2 runs",
    ),
    "rescales stored rewards": (
        "hooks leave stored transitions alone",
        RESCALES,
        "at_interval changes stored transitions",
    ),
    "rescales rewards that a snapshot has saved": (
        "resumed = uninterrupted",
        RESCALES,
        "seed 0, task 1: trainer/actor.0.bias, trainer/actor.0.weight, trainer/actor.1.bias differ",
    ),
    "shortens the replay": (
        "hooks leave stored transitions alone",
        """
    def after_update(self, batch, targets):
        self.trainer.replay.set_added(self.trainer.position, 8)
""",
        "after_update changes stored transitions",
    ),
    "mixes runs": (
        "hooks return one value per run, no global random numbers",
        """
    def actor_penalty(self, batch):
        return (self.trainer.params["actor.0.weight"] ** 2).sum()
""",
        "Wrong.actor_penalty returned shape []",
    ),
    "acts with noise of its own": (
        "hooks return one value per run, no global random numbers",
        """
    def policy_weights(self, position):
        weights = self.trainer.actor_params
        noisy = self.trainer.updates > 0
        return {k: x + 0.1 * torch.randn_like(x) if noisy else x for k, x in weights.items()}
""",
        "Wrong.policy_weights draws from the global generator of torch; draw with",
    ),
    "draws now and then": (
        "hooks return one value per run, no global random numbers",
        """
    interval = 1000
    def at_interval(self):
        torch.rand(1)
""",
        "Wrong.at_interval draws from the global generator of torch",
    ),
    "starts tasks at random": (
        "hooks return one value per run, no global random numbers",
        """
    def on_task_start(self, position):
        torch.rand(1)
""",
        "Wrong.on_task_start draws from the global generator of torch",
    ),
    "raises": (
        "updates can be captured",
        """
    def actor_penalty(self, batch):
        return 1 / 0
""",
        "wrong.py line 8, in actor_penalty: ZeroDivisionError",
    ),
}


def test_what_the_next_start_sets_again_is_not_lost(tmp_path: Path, toy_pool: Pool) -> None:
    body = """
    def on_task_start(self, position):
        self.scratch = torch.zeros(self.trainer.runs)
    def on_task_end(self, position):
        self.scratch = self.scratch + 1
"""
    (tmp_path / "right.py").write_text(HEAD.replace("Wrong", "Right") + body)
    no_state_is_lost(Kit(f"{tmp_path}/right.py:Right", tmp_path, toy_pool))


@pytest.mark.parametrize(
    "title", ["updates can be captured", "hooks leave stored transitions alone"]
)
def test_weights_may_be_changed_between_updates(title: str, tmp_path: Path, toy_pool: Pool) -> None:
    """As in training, without gradients."""
    body = """
    interval = 2
    captures_interval = True
    def at_interval(self):
        self.trainer.params["log_alpha"].mul_(0.9)
"""
    (tmp_path / "right.py").write_text(HEAD.replace("Wrong", "Right") + body)
    CHECKS[title](Kit(f"{tmp_path}/right.py:Right", tmp_path, toy_pool))


def test_lanes_and_exploration_are_asked_for_the_current_task_only(
    tmp_path: Path, toy_pool: Pool
) -> None:
    body = """
    def lanes(self, position):
        assert position == self.trainer.position
        return super().lanes(position)
    def exploration(self, position):
        assert position == self.trainer.position
        return super().exploration(position)
"""
    (tmp_path / "right.py").write_text(HEAD.replace("Wrong", "Right") + body)
    title = "hooks return one value per run, no global random numbers"
    CHECKS[title](Kit(f"{tmp_path}/right.py:Right", tmp_path, toy_pool))


def from_the_docs(name: str, folder: Path, pool: Pool) -> Kit:
    """A method that is written out in the docs and keeps the contract in what its kind can miss."""
    text = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    [code] = [part for part in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
              if f"class {name}(" in part]  # fmt: skip
    (folder / "own.py").write_text(code)
    kit = Kit(f"{folder}/own.py:{name}", folder, pool)
    for title in ("state reaches the next task", "updates can be captured",
                  "hooks return one value per run, no global random numbers",
                  "hooks leave stored transitions alone"):  # fmt: skip
        CHECKS[title](kit)
    return kit


def test_the_network_written_out_in_the_docs_learns_and_keeps_the_contract(
    tmp_path: Path, toy_pool: Pool
) -> None:
    kit = from_the_docs("Foresight", tmp_path, toy_pool)
    for title in ("member of a fleet = alone", "resumed = uninterrupted"):
        CHECKS[title](kit)
    method: Any = kit.rehearse(1).method
    batch = method.trainer.replay.sample(8)
    errors = []
    for _ in range(100):
        errors.append(method.error(batch, method.model))
        with torch.no_grad():  # as in an update
            method.after_update(batch, batch.reward)
    assert (errors[-1] < errors[0]).all()


def test_the_memory_written_out_in_the_docs_keeps_the_contract(
    tmp_path: Path, toy_pool: Pool
) -> None:
    method: Any = from_the_docs("Few", tmp_path, toy_pool).rehearse(2).method
    assert method.memory.shape[:2] == (2, 200)  # of two finished tasks
    tasks = method.sample_batch(8).tasks.index
    assert set(tasks[:, :8].flatten().tolist()) <= {0, 1} and (tasks[:, 8:] == 2).all()


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_found(mistake: str, tmp_path: Path, toy_pool: Pool) -> None:
    title, body, words = WRONG[mistake]
    (tmp_path / "wrong.py").write_text(HEAD + body)
    from cwbench.experiment.conformance import _problem

    kit = Kit(f"{tmp_path}/wrong.py:Wrong", tmp_path, toy_pool)
    assert words in _problem(CHECKS[title], kit)[0]


def test_one_error_is_reported_once(tmp_path: Path) -> None:
    """The others could not be reached; its text has the number of runs, which differs."""
    (tmp_path / "wrong.py").write_text(HEAD + WRONG["mixes runs"][1])
    verdicts = list(run_checks(f"{tmp_path}/wrong.py:Wrong"))
    failed = [one.check for one in verdicts if one.problem and one.checked]
    assert failed == ["hooks return one value per run, no global random numbers"]
    assert [one.check for one in verdicts if not one.checked] == [
        "updates can be captured",
        "updates leave no memory behind",
        "hooks leave stored transitions alone",
        "member of a fleet = alone",
        "resumed = uninterrupted",
        "neighbours of a diverged run are untouched",
    ]
    with pytest.raises(BrokenContract) as error:
        check_method(f"{tmp_path}/wrong.py:Wrong")
    assert str(error.value).count("actor_penalty returned shape []") == 1


def test_a_run_that_depends_on_its_neighbours_is_found(tmp_path: Path, toy_pool: Pool) -> None:
    (tmp_path / "wrong.py").write_text(
        HEAD
        + """
    def adjust_gradients(self, grads):
        for name in grads:
            grads[name] *= self.trainer.runs
"""
    )
    from cwbench.experiment.conformance import member_equals_alone

    kit = Kit(f"{tmp_path}/wrong.py:Wrong", tmp_path, toy_pool)
    with pytest.raises(BrokenContract, match=r"seed 1, task 1: .* differ"):
        member_equals_alone(kit)


def test_nothing_trained_is_no_agreement(tmp_path: Path) -> None:
    with pytest.raises(BrokenContract, match="nothing was trained"):
        require_same(Store(tmp_path), Store(tmp_path), [])


SWEPT = """
from dataclasses import dataclass
from cwbench.learner import Method, MethodConfig, option, per_run_sum

@dataclass(frozen=True)
class OwnConfig(MethodConfig):
    coef: float = option({default}, "Strength.", minimum=0{bound}, per_run=True)

class Own(Method[OwnConfig]):
    config_class = OwnConfig
    def actor_penalty(self, batch):
        weight = self.trainer.params["actor.0.weight"]
        return self.per_run(lambda config: config.coef) * per_run_sum(weight**2)
"""


@pytest.mark.parametrize(("default", "bound"), [(0.0, ""), (0.5, ", maximum=1")])
def test_any_default_of_a_swept_option_can_be_checked(
    tmp_path: Path, toy_pool: Pool, default: float, bound: str
) -> None:
    """Thirty times nothing is nothing, and thirty times a half is more than one."""
    file = tmp_path / "own.py"
    file.write_text(SWEPT.format(default=default, bound=bound))
    CHECKS["swept options = alone"](Kit(f"{file}:Own", tmp_path, toy_pool))

"""Independent and fine-tuning-n: training as defined, and nothing forgotten."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch

from cwbench.learner import MethodConfig, Trainer
from cwbench.methods.finetuning_n import FineTuningN
from cwbench.methods.independent import Independent
from cwbench.store import checkpoint

MakeTrainer = Callable[..., Trainer]
TASKS = ("reach-0-1", "reach-2-1000")


Ends = Callable[..., list[dict[str, torch.Tensor]]]


@pytest.fixture(scope="module")
def ends(toy_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Ends:
    """What the segments of a run end with; each run is trained once."""

    @cache
    def train(name: str, tasks: tuple[str, ...] = TASKS, **options: str) -> list[Any]:
        store, plan, _ = toy_run(tmp_path_factory.mktemp(name), name, tasks=tasks, options=options)
        return [checkpoint.load(store.folder(segment).end)[0] for segment in plan.segments]

    return train


def trained(end: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: x for name, x in end.items() if name.startswith("trainer/")}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_finetuning_n_trains_as_finetuning(ends: Ends) -> None:
    pairs = zip(ends("finetuning"), ends("finetuning-n"), strict=True)
    assert all(same(trained(plain), trained(kept)) for plain, kept in pairs)


@pytest.mark.parametrize("name", ["finetuning-n", "independent"])
def test_a_kept_actor_is_the_one_its_task_ended_with(name: str, ends: Ends) -> None:
    first, second = ends(name)
    for key, kept in second.items():
        if key.startswith("method/kept:0/"):
            actor = key.removeprefix("method/kept:0/")
            assert torch.equal(kept, first[f"trainer/{actor}"])
            assert not torch.equal(kept, second[f"trainer/{actor}"])
    old_head = first["trainer/actor.4.weight"][..., 0, :, :]
    assert torch.equal(second["trainer/actor.4.weight"][..., 0, :, :], old_head)


def test_old_positions_act_with_their_own_copy(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1], position=1)
    method = FineTuningN(MethodConfig(), trainer)
    method.on_task_end(0)
    before = {name: x.clone() for name, x in method.policy_weights(0).items()}
    trainer.method = method
    trainer.train(3)
    trunk = trainer.trunk_names("actor")
    after = method.policy_weights(0)
    assert all(torch.equal(before[name], after[name]) for name in trunk)
    live = method.policy_weights(1)
    assert not any(torch.equal(before[name], live[name]) for name in trunk)


def test_independent_begins_as_finetuning(ends: Ends) -> None:
    assert same(trained(ends("finetuning")[0]), trained(ends("independent")[0]))


def test_a_task_learned_independently_does_not_know_the_one_before(ends: Ends) -> None:
    """Its shared weights depend on seed and position only, from beginning to end."""
    made = [ends("independent"), ends("independent", ("reach-4-1", TASKS[1]))]
    assert not torch.equal(*(end[0]["trainer/actor.1.weight"] for end in made))
    for name in made[0][1]:
        shared = name.endswith(("actor.1.weight", "critic.1.weight", "critic.1.bias"))
        if shared and name.startswith("trainer/"):
            assert torch.equal(made[0][1][name], made[1][1][name]), name


def test_initial_weights_of_positions_differ(make_trainer: MakeTrainer) -> None:
    started = []
    for position in (1, 2):
        trainer = make_trainer([0], position=position)
        Independent(MethodConfig(), trainer).on_task_start(position)
        started.append(trainer.params["critic.1.weight"].detach())
        assert torch.equal(trainer.target["critic.1.weight"], started[-1])
    assert not torch.equal(*started)


def test_resetting_everything_shared_is_learning_independently(ends: Ends) -> None:
    reset = ends("finetuning-n", reset="actor,critic")
    assert all(same(one, other) for one, other in zip(reset, ends("independent"), strict=True))


CRITIC = {"critic.0", "critic.1", "critic.2", "critic.3", "critic.4", "critic.norm"}
HEADS = {"actor.4", "critic.4", "log_alpha"}


@pytest.mark.parametrize(("part", "layers"), [("critic", CRITIC), ("heads", HEADS)])
def test_reset_starts_exactly_what_is_named_again(
    make_trainer: MakeTrainer, part: str, layers: set[str]
) -> None:
    fresh, trainer = (make_trainer([0], position=1) for _ in range(2))
    trainer.train(3)
    before = {name: x.clone() for name, x in trainer.state().items()}
    trainer.reset([part])
    changed = {name for name, x in trainer.state().items() if not torch.equal(x, before[name])}
    assert {
        re.sub(r"^target\.|\.(weight|bias|scale|shift)$", "", name) for name in changed
    } == layers
    if part == "heads":
        for name in ("actor.4.weight", "log_alpha"):
            assert torch.equal(trainer.params[name][:, 1], fresh.params[name][:, 1])


def test_a_reset_is_recorded_and_none_is_not() -> None:
    assert MethodConfig().record() == {}
    assert MethodConfig(reset="critic").record() == {"reset": "critic"}

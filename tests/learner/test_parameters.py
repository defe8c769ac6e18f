"""Initial values, new heads, resets and copies of parameters."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cwbench.learner import rng
from cwbench.learner.trainer import Trainer
from cwbench.spec.config import NetworkConfig, SACConfig

Make = Callable[..., Trainer]


def test_a_new_task_adds_a_head_and_keeps_the_rest(make_trainer: Make) -> None:
    first = make_trainer([0, 1])
    first.train(5)
    second = make_trainer([0, 1], position=1, inherited=first.state())
    for name, x in first.state().items():
        new = second.state()[name]
        if new.shape == x.shape:
            assert torch.equal(new, x), name
        else:
            axis = second.task_axis(name.removeprefix("target."))
            assert torch.equal(new.narrow(axis, 0, 1), x), name
    assert second.params["log_alpha"][:, 1].eq(1).all()
    head = second.params["critic.4.weight"][:, :, 1]
    assert torch.equal(second.target["critic.4.weight"][:, :, 1], head)


def test_logged_statistics_are_those_of_the_current_task(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1], position=2)
    trainer.value["mean"][:] = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    assert trainer.current_value("mean") == [3, 6]


def test_copied_heads_are_exactly_the_source_of_each_run(make_trainer: Make) -> None:
    trainer = make_trainer(
        [0, 1], position=2, network=NetworkConfig(width=16, critic_head_layers=3)
    )
    before = {name: x.clone() for name, x in trainer.state().items()}
    source = torch.tensor([1, 0])
    trainer.copy_head("actor", source, 2)
    trainer.copy_head("critic", source, 2)
    for name, x in trainer.state().items():
        bare = name.removeprefix("target.")
        network = trainer.networks.get(bare.split(".")[0])
        old, new = before[name], x
        if network and network.per_task(bare):
            old, new = old.movedim(network.task_axis, 1), new.movedim(network.task_axis, 1)
            assert torch.equal(new[:, :2], old[:, :2])
            assert torch.equal(new[0, 2], old[0, 1]) and torch.equal(new[1, 2], old[1, 0])
        else:
            assert torch.equal(new, old), name


def test_the_temperature_starts_where_asked(make_trainer: Make) -> None:
    trainer = make_trainer([0], sac=SACConfig(batch_size=16, initial_log_alpha=-2.0))
    assert trainer.params["log_alpha"].eq(-2).all()


def test_a_reset_returns_to_fresh_weights_of_what_is_named(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1])
    fresh = {name: x.clone() for name, x in trainer.state().items()}
    trainer.train(3)
    trained = {name: x.clone() for name, x in trainer.state().items()}
    trainer.reset(["heads"])
    for name, x in trainer.state().items():
        bare = name.removeprefix("target.")
        network = trainer.networks.get(bare.split(".")[0])
        in_head = bare == "log_alpha" or (network is not None and network.per_task(bare))
        assert torch.equal(x, (fresh if in_head else trained)[name]), name


def test_fresh_shared_weights_are_drawn_on_the_trainer_s_device(
    make_trainer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 runs' are 30 million numbers: a CPU takes seconds, in which a GPU would wait."""
    used: set[str] = set()

    def hash_bits(keys: Tensor, counters: Tensor) -> Tensor:
        used.update((keys.device.type, counters.device.type))
        return plain(keys, counters)

    trainer, plain = make_trainer([0]), rng.hash_bits
    monkeypatch.setattr(rng, "hash_bits", hash_bits)
    trainer.device = torch.device("meta")
    for network in ("actor", "critic"):
        assert all(x.is_meta for x in trainer.fresh_trunk(network, "@1").values())
    assert used == {"meta"}


@pytest.mark.parametrize("head_layers", [0, 3])
def test_a_reset_leaves_nothing_of_a_critic(make_trainer: Make, head_layers: int) -> None:
    """Neither old heads, which read features that are gone, nor what a new one has copied."""
    network = NetworkConfig(width=16, critic_head_layers=head_layers)
    first = make_trainer([0, 1], network=network)
    first.train(5)
    first.value["mean"].fill_(7)
    first.value["std"].fill_(3)
    used = make_trainer([0, 1], position=1, network=network, inherited=first.state())
    actor = {name: x.clone() for name, x in used.actor_params.items()}
    used.copy_head("critic", torch.tensor([0, 0]), 1)
    used.reset(["critic"])
    fresh = make_trainer([0, 1], position=1, network=network)
    fresh.reset(["critic"])
    for name, x in fresh.state().items():
        if not name.startswith(("actor.", "log_alpha")):
            assert torch.equal(used.state()[name], x), name
    assert all(torch.equal(used.actor_params[name], x) for name, x in actor.items())

"""Measures of plasticity, on layers and policies whose answer is known."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.learner import TaskIndex, Trainer, diagnostics, losses
from cwbench.learner.replay import OldTask, Replay
from cwbench.spec.transition import Dims

MakeTrainer = Callable[..., Trainer]


def test_a_silent_unit_is_dormant() -> None:
    hidden = torch.ones(2, 8, 4)
    hidden[1, :, 2] = 0
    assert diagnostics.dormant_share(hidden).tolist() == [0, 0.25]


def test_a_unit_is_dormant_up_to_a_tenth_of_its_layer() -> None:
    """The layer's mean size is 10: 0.99 is below a tenth of that, 1.01 is not."""
    sizes = torch.tensor([0.99, 1.01, 28.0, 10.0])
    signs = torch.tensor([1.0, -1.0]).view(1, 2, 1)  # a mean of zero is not silence
    assert sizes.mean() == 10
    assert diagnostics.dormant_share(signs * sizes).tolist() == [0.25]


def test_scores_average_one_and_equals_are_not_dormant() -> None:
    active = torch.rand(3, 2, 16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(diagnostics.dormancy(active).mean(-1), torch.ones(3, 2))
    assert (diagnostics.dormancy(torch.full((1, 5), 0.3)) > 0.99).all()


def test_effective_rank_counts_directions_of_equal_size() -> None:
    eye = torch.eye(8).expand(1, 2, 8, 8)  # of both twins
    assert diagnostics.effective_rank(eye).tolist() == pytest.approx([8])
    one = torch.outer(torch.arange(1.0, 9), torch.ones(5)).unsqueeze(0)
    assert diagnostics.effective_rank(one).tolist() == pytest.approx([1])
    three = torch.diag(torch.tensor([1.0, 1, 1, 0, 0])).unsqueeze(0)
    assert diagnostics.effective_rank(three).tolist() == pytest.approx([3])


def test_cosine_is_over_all_tensors_of_a_run() -> None:
    some = [torch.tensor([[1.0, 0.0], [1.0, 2.0]]), torch.tensor([[0.0], [2.0]])]
    others = [torch.tensor([[0.0, 3.0], [-1.0, -2.0]]), torch.tensor([[0.0], [-2.0]])]
    assert diagnostics.cosine(some, others).tolist() == pytest.approx([0, -1])


def test_a_policy_has_no_distance_from_itself_and_some_after_updates(
    make_trainer: MakeTrainer,
) -> None:
    trainer = make_trainer([0, 1])
    then = diagnostics.probe(trainer, trainer.actor_params)
    before = diagnostics.divergence(trainer, trainer.actor_params, 0, then)
    assert before.tolist() == pytest.approx([0, 0], abs=1e-5)
    trainer.train(5)
    assert (diagnostics.divergence(trainer, trainer.actor_params, 0, then) > 1e-5).all()


def test_divergence_is_from_the_policy_then_to_the_one_now(make_trainer: MakeTrainer) -> None:
    """KL(then || now) by torch, of other weights than the trainer's and another head."""
    trainer = make_trainer([0, 1], position=1)
    old = {name: x + 0.1 for name, x in trainer.actor_params.items()}
    now = {name: x - 0.1 for name, x in trainer.actor_params.items()}
    probe = diagnostics.probe(trainer, old)
    one, other = (
        torch.distributions.Normal(mean, log_std.exp())
        for mean, log_std in (
            trainer.policy(weights, probe.obs, TaskIndex.single(head, 2, 256, trainer.device))
            for weights, head in ((old, 1), (now, 0))
        )
    )
    expected = torch.distributions.kl_divergence(one, other).sum(-1).mean(-1)
    assert (expected > 0.1).all()
    found = diagnostics.divergence(trainer, now, 0, probe)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


def test_norms_are_of_shared_weights_and_of_all_gradients(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer([0, 1])
    values = diagnostics.measure(trainer, "0")
    batch = trainer.replay.sample_once(256, "diagnose-0")
    grads = trainer.sac_gradients_once(batch, "diagnose-0").grads
    for network in ("actor", "critic"):
        shared = [trainer.params[name].detach() for name in trainer.trunk_names(network)]
        whole = [grads[name] for name in trainer.group(network)]
        for quantity, tensors in (("weight_norm", shared), ("gradient_norm", whole)):
            expected = torch.cat([x.flatten(1) for x in tensors], 1).norm(dim=1)
            torch.testing.assert_close(values[quantity, network], expected)
        assert len(shared) < len(whole)


def test_measuring_changes_nothing_and_does_not_depend_on_neighbours(
    make_trainer: MakeTrainer,
) -> None:
    measured, plain, alone = make_trainer([0, 1]), make_trainer([0, 1]), make_trainer([1])
    for trainer in (measured, plain, alone):
        trainer.train(2)
    values, own = diagnostics.measure(measured, "2"), diagnostics.measure(alone, "2")
    for trainer in (measured, plain):
        trainer.train(2)
    assert all(torch.equal(x, plain.state()[name]) for name, x in measured.state().items())
    assert values.keys() == own.keys()
    for key, x in values.items():
        torch.testing.assert_close(x[1:], own[key])
    quantities = {quantity for quantity, _ in values}
    assert quantities == {"dormant", "effective_rank", "weight_norm", "gradient_norm"}
    assert ("dormant", "critic.3") in values and ("dormant", "actor.4") not in values


def test_gradients_of_a_changed_loss_are_measured(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--gradients autograd`, as in updates; those of the manual ones do not know of it."""

    def measured(gradients: str) -> float:
        trainer = make_trainer([0], gradients=gradients)
        return float(diagnostics.measure(trainer, "0")["gradient_norm", "critic"])

    before, plain = measured("autograd"), losses.sac_losses
    assert measured("manual") == pytest.approx(before, rel=1e-5)

    def tripled(*arguments: Any) -> tuple[losses.Losses, torch.Tensor]:
        found, y = plain(*arguments)
        return found._replace(critic=3 * found.critic), y

    monkeypatch.setattr(losses, "sac_losses", tripled)
    assert measured("autograd") == pytest.approx(3 * before, rel=1e-5)


def test_gradients_of_equal_tasks_point_the_same_way(make_trainer: MakeTrainer) -> None:
    """The old task's transitions and heads are the current one's, so cosines are near one."""
    trainer = make_trainer([0], position=1)
    for name in (*trainer.group("actor"), *trainer.group("critic")):
        network = trainer.networks[name.split(".")[0]]
        if network.per_task(name):
            for table in (trainer.params, trainer.target):
                if name in table:
                    heads = table[name].detach()
                    heads.select(network.task_axis, 0).copy_(heads.select(network.task_axis, 1))
    rows = trainer.replay.stored(1)
    old = {0: OldTask([rows[0]], [0])}
    replay = Replay(1, rows.shape[1], Dims(12, 4), trainer.streams, live=[1], old=old)
    replay.add(1, rows)
    trainer.replay = replay
    values = diagnostics.measure(trainer, "0")
    assert float(values["gradient_cosine", "critic"]) > 0.7
    opposite = {0: OldTask([rows[0].clone()], [0])}
    opposite[0].shards[0][:, 16] = 2 * 1000 - rows[0, :, 16]  # rewards near 2000
    trainer.replay = Replay(1, rows.shape[1], Dims(12, 4), trainer.streams, live=[1], old=opposite)
    rows = rows.clone()
    rows[:, :, 16] -= 2000
    trainer.replay.add(1, rows)
    assert float(diagnostics.measure(trainer, "0")["gradient_cosine", "critic"]) < -0.7

"""What EWC, L2 and MAS share: the penalty's value, and means over examples."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner import Params, TaskIndex, Trainer
from cwbench.methods import _anchor
from cwbench.methods.ewc import EWC, EWCConfig
from cwbench.spec.config import NetworkConfig

Make = Callable[..., Trainer]


def test_the_drift_of_each_run_is_weighted() -> None:
    """Run 0: 2 * 1^2 + 3 * 2^2 = 14; run 1 has not moved."""
    then = [torch.zeros(2, 1), torch.zeros(2, 1)]
    now = [torch.tensor([[1.0], [0.0]]), torch.tensor([[2.0], [0.0]])]
    importance = [torch.full((2, 1), 2.0), torch.full((2, 1), 3.0)]
    assert _anchor.drift(now, then, importance).tolist() == [14, 0]


class Counted(_anchor.Anchored[_anchor.AnchorConfig]):
    def new_importance(self, network: str) -> dict[str, Tensor]:
        return {name: torch.ones(2, 1, 1) for name in self.trainer.trunk_names(network)[:1]}


def test_importances_add_up_and_the_anchor_is_the_latest(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1])
    method = Counted(_anchor.AnchorConfig(coef=1.0), trainer)
    name = trainer.trunk_names("actor")[0]
    for position in range(2):
        method.on_task_end(position)
        trainer.params[name].detach().add_(1)
    assert list(method.importance) == [name]  # critics have a coefficient of 0
    assert method.importance[name].unique().item() == 2
    assert_close(method.anchor[name] + 1, trainer.params[name].detach())


def test_each_network_is_pulled_with_its_own_coefficient(make_trainer: Make) -> None:
    """All weights of the first layer, 12 (critics: 16 and twins) by 16, have moved by a half."""
    trainer = make_trainer([0, 1])
    method = Counted(_anchor.AnchorConfig(coef=3.0, critic_coef=5.0), trainer)
    method.on_task_end(0)
    for network in ("actor", "critic"):
        trainer.params[trainer.trunk_names(network)[0]].detach().add_(0.5)
    batch = method.sample_batch(4)
    assert method.actor_penalty(batch).tolist() == pytest.approx([3 * 12 * 16 / 4] * 2)
    assert method.critic_penalty(batch).tolist() == pytest.approx([5 * 2 * 16 * 16 / 4] * 2)


def test_an_examples_measure_is_averaged_for_each_run(make_trainer: Make) -> None:
    """The measure is the example's first observation times its task: the mean over the same draw,
    in the second task."""
    trainer = make_trainer([0, 1], position=1)

    def measure(
        params: Params, weights: Sequence[Tensor], obs: Tensor, action: Tensor, tasks: TaskIndex
    ) -> list[Tensor]:
        value = obs[:, 0, 0] * tasks.index[:, 0]
        return [torch.ones_like(w) * value.view(-1, *[1] * (w.dim() - 1)) for w in weights]

    samples = _anchor.CHUNK + 10  # more than one chunk
    found = _anchor.mean_over_examples(trainer, "actor", samples, measure)
    expected = trainer.replay.sample_once(samples, "importance").obs[..., 0].mean(1)
    for name in trainer.trunk_names("actor"):
        assert_close(found[name].flatten(1).amax(1), expected)
        assert_close(found[name].flatten(1).amin(1), expected)


def test_where_each_task_has_an_actor_of_its_own_nothing_is_pulled(make_trainer: Make) -> None:
    """As with `--unshared actor`: the task's end has no shared weight to measure."""
    network = NetworkConfig(width=8, layers=2, actor_head_layers=2)
    trainer = make_trainer([0, 1], position=1, network=network)
    method = EWC(EWCConfig(importance_samples=4), trainer)
    method.on_task_end(0)
    assert method.importance == {}
    assert method.actor_penalty(method.sample_batch(4)).tolist() == [0, 0]

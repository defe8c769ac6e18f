"""MAS: importances against finite differences, one weight and one example at a time."""

from collections.abc import Callable

import torch
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.trainer import Trainer
from cwbench.methods.mas import MAS, MASConfig
from cwbench.spec.config import NetworkConfig

Make = Callable[..., Trainer]
SAMPLES = 70  # more than are measured at once


def test_importance_is_the_mean_absolute_slope_of_the_squared_outputs(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1], network=NetworkConfig(width=6, layers=2))
    trainer.method = mas = MAS(MASConfig(importance_samples=SAMPLES, critic_coef=1.0), trainer)
    mas.on_task_end(0)
    batch = trainer.replay.sample_once(SAMPLES, "importance")
    obs, action = batch.obs.double(), batch.action.double()
    tasks = TaskIndex.single(0, 2, SAMPLES, trainer.device)
    params = {name: p.detach().double() for name, p in trainer.params.items()}

    def actor_squares() -> torch.Tensor:  # [R, B]
        mean, log_std = trainer.policy(params, obs, tasks)
        return (mean.tanh() ** 2 + log_std**2).sum(-1)

    def critic_squares() -> torch.Tensor:  # [R, B], of the second twin
        return trainer.q(params, obs, action, tasks)[:, 1] ** 2

    # The same entry of both runs is moved together: no run's outputs depend on another's weights.
    for name, entry, squares in (
        ("actor.0.weight", (3, 2), actor_squares),
        ("actor.0.bias", (4,), actor_squares),
        ("actor.norm.scale", (1,), actor_squares),
        ("actor.1.weight", (5, 0), actor_squares),
        ("critic.1.weight", (1, 2, 3), critic_squares),
        ("critic.norm.shift", (1, 0), critic_squares),
    ):
        index, step, ends = (slice(None), *entry), 1e-5, []
        value = params[name][index].clone()
        for shifted in (value + step, value - step):
            params[name][index] = shifted
            ends.append(squares())
        params[name][index] = value
        expected = ((ends[0] - ends[1]) / (2 * step)).abs().mean(1)
        assert_close(mas.importance[name][index].double(), expected, rtol=1e-3, atol=1e-7)


def test_signs_do_not_cancel(make_trainer: Make) -> None:
    """The mean of absolute slopes, not the absolute mean slope."""
    trainer = make_trainer([0], network=NetworkConfig(width=6, layers=2))
    trainer.method = mas = MAS(MASConfig(importance_samples=SAMPLES), trainer)
    mas.on_task_end(0)
    batch = trainer.replay.sample_once(SAMPLES, "importance")
    mean, log_std = trainer.policy(trainer.params, batch.obs, batch.tasks)
    loss = (mean.tanh() ** 2 + log_std**2).sum() / SAMPLES
    name = "actor.1.weight"
    [grad] = torch.autograd.grad(loss, [trainer.params[name]])
    assert (mas.importance[name] >= grad.abs() - 1e-6).all()
    assert mas.importance[name].sum() > 1.1 * grad.abs().sum()

"""EWC: the Fisher information by other routes, and what the penalty pulls."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner.heads import TaskIndex
from cwbench.learner.trainer import Trainer
from cwbench.methods.ewc import EWC, EWCConfig, gaussian_fisher
from cwbench.spec.config import NetworkConfig

Make = Callable[..., Trainer]
SMALL = NetworkConfig(width=6, layers=2)
SAMPLES = 70  # more than are measured at once


def make_ewc(make_trainer: Make, *, seeds: tuple[int, ...] = (0, 1), **options: Any) -> EWC:
    trainer = make_trainer(list(seeds), network=SMALL)
    trainer.method = EWC(EWCConfig(importance_samples=SAMPLES, **options), trainer)
    return trainer.method


def one_run(trainer: Trainer, run: int) -> dict[str, Tensor]:
    return {
        n: p[run : run + 1].detach().clone().requires_grad_() for n, p in trainer.params.items()
    }


def test_fisher_equals_a_loop_over_single_examples(make_trainer: Make) -> None:
    ewc = make_ewc(make_trainer)
    trainer = ewc.trainer
    ewc.on_task_end(0)
    batch = trainer.replay.sample_once(SAMPLES, "importance")
    names = trainer.trunk_names("actor")
    assert sorted(ewc.importance) == sorted(names)
    for run in range(2):
        params = one_run(trainer, run)
        total = {name: torch.zeros_like(params[name]) for name in names}
        for i in range(SAMPLES):
            tasks = TaskIndex.single(0, 1, 1, trainer.device)
            mean, log_std = trainer.policy(params, batch.obs[run : run + 1, i : i + 1], tasks)
            fisher = {name: torch.zeros_like(params[name]) for name in names}
            for j in range(4):
                std = log_std[0, 0, j].exp()
                for output, factor in ((mean[0, 0, j].tanh(), 1), (std, 2)):
                    output.backward(retain_graph=True)
                    for name in names:
                        grad = params[name].grad
                        assert grad is not None
                        fisher[name] += factor * grad**2 / (std.detach() ** 2 + 1e-6)
                        params[name].grad = None
            for name in names:
                total[name] += fisher[name].clamp(min=1e-5) / SAMPLES
        for name in names:
            assert_close(ewc.importance[name][run], total[name][0], rtol=1e-4, atol=1e-9)


def test_fisher_of_a_linear_gaussian_policy_is_the_textbooks() -> None:
    # mean = x W, std = exp(b): F(W_ij) = x_i^2 / std_j^2 and F(b_j) = 2.
    x = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0]])
    weight = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    log_std = torch.tensor([0.0, 1.0])
    copies = weight.expand(2, 3, 2).requires_grad_(), log_std.expand(2, 2).requires_grad_()
    mean = (x[:, None] @ copies[0])[:, 0]
    of_weight, of_log_std = gaussian_fisher(mean, copies[1].exp(), copies)
    expected = x[:, :, None] ** 2 / (2 * log_std).exp()
    assert_close(of_weight, expected, rtol=1e-5, atol=0)  # 1e-6 is added to the variance
    assert_close(of_log_std, torch.full((2, 2), 2.0), rtol=1e-5, atol=0)


def test_weights_without_influence_get_the_smallest_importance(make_trainer: Make) -> None:
    ewc = make_ewc(make_trainer)
    ewc.trainer.replay.rows[:, 5] = 0  # an observation that is always zero
    ewc.on_task_end(0)
    weight = ewc.importance["actor.0.weight"]
    assert_close(weight[:, 5], torch.full_like(weight[:, 5], 1e-5), rtol=1e-4, atol=0)
    assert (weight[:, 4] > 1e-4).any()


def test_penalty_gradient_equals_finite_differences(make_trainer: Make) -> None:
    ewc = make_ewc(make_trainer)
    trainer, batch = ewc.trainer, ewc.trainer.replay.sample(16)
    assert not ewc.actor_penalty(batch).any()  # the first task is free
    ewc.on_task_end(0)
    # In double precision, so that differences of the sum keep their digits.
    ewc.importance, ewc.anchor, trainer.params = (
        {name: x.detach().double() for name, x in table.items()}
        for table in (ewc.importance, ewc.anchor, trainer.params)
    )
    generator = torch.Generator().manual_seed(0)
    for name in trainer.trunk_names("actor"):
        param = trainer.params[name]
        param += 0.1 * torch.randn(param.shape, generator=generator).double()
    for name in ("actor.0.weight", "actor.norm.scale", "actor.1.bias"):
        param = trainer.params[name].requires_grad_()
        [grad] = torch.autograd.grad(ewc.actor_penalty(batch).sum(), [param])
        flat = param.detach().view(-1)
        for entry in torch.randint(len(flat), (5,), generator=generator).tolist():
            value, step, ends = float(flat[entry]), 1e-3, []
            for shifted in (value + step, value - step):
                flat[entry] = shifted
                ends.append(ewc.actor_penalty(batch).sum().detach())
            flat[entry] = value
            slope = (ends[0] - ends[1]) / (2 * step)
            assert_close(grad.view(-1)[entry], slope, rtol=1e-6, atol=1e-8)


def test_importance_adds_up_and_the_anchor_is_the_latest(make_trainer: Make) -> None:
    first = make_ewc(make_trainer)
    first.on_task_end(0)
    second = make_trainer([0, 1], position=1, network=SMALL)
    second.start(first.trainer.state())
    second.method = ewc = EWC(EWCConfig(importance_samples=SAMPLES), second)
    ewc.load_state(first.state())
    second.train(3)
    alone = EWC(EWCConfig(importance_samples=SAMPLES), second)
    alone.on_task_end(1)
    ewc.on_task_end(1)
    for name in second.trunk_names("actor"):
        total = first.importance[name] + alone.importance[name]
        assert_close(ewc.importance[name], total, rtol=1e-6, atol=0)
        assert torch.equal(ewc.anchor[name], second.params[name])
        assert not torch.equal(ewc.anchor[name], first.anchor[name])


def test_the_penalty_is_coef_times_weighted_squares(make_trainer: Make) -> None:
    ewc = make_ewc(make_trainer, coef=50.0)
    ewc.on_task_end(0)
    with torch.no_grad():
        ewc.trainer.params["actor.1.weight"][1] += 0.1
    penalty = ewc.actor_penalty(ewc.trainer.replay.sample(16))
    expected = 50 * 0.1**2 * ewc.importance["actor.1.weight"][1].sum()
    assert penalty[0] == 0
    assert_close(penalty[1].detach(), expected, rtol=1e-5, atol=0)


def test_critics_are_pulled_only_if_asked(make_trainer: Make) -> None:
    ewc = make_ewc(make_trainer, seeds=(0,), critic_coef=1e4)
    trainer = ewc.trainer
    ewc.on_task_end(0)
    batch = trainer.replay.sample_once(SAMPLES, "importance")
    name, params = "critic.1.weight", one_run(trainer, 0)
    total = torch.zeros_like(params[name])
    for i in range(SAMPLES):
        tasks = TaskIndex.single(0, 1, 1, trainer.device)
        q = trainer.q(params, batch.obs[:, i : i + 1], batch.action[:, i : i + 1], tasks)
        for twin in range(2):
            [grad] = torch.autograd.grad(q[0, twin, 0], [params[name]], retain_graph=True)
            total[:, twin] += grad[:, twin] ** 2 / SAMPLES
    assert_close(ewc.importance[name], total, rtol=1e-4, atol=1e-9)
    free = make_ewc(make_trainer)
    free.on_task_end(0)
    assert not [key for key in free.importance if key.startswith("critic")]
    assert not free.critic_penalty(batch).any()

"""PopArt: predictions stay, statistics go where they should."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cwbench.learner.heads import TaskIndex
from cwbench.learner.trainer import Trainer
from cwbench.methods._popart import moved_statistics, update_popart

Make = Callable[..., Trainer]


def predictions(trainer: Trainer, tasks: TaskIndex, x: Tensor) -> Tensor:
    """Values in the unit of rewards, of both critics and both targets: [R, 4, B]."""
    q = torch.cat([trainer.critic(p, x, tasks) for p in (trainer.params, trainer.target)], 1)
    std, mean = (tasks.of(trainer.value[name])[:, None] for name in ("std", "mean"))
    return (q.squeeze(-1) * std + mean).detach()


@pytest.mark.parametrize("stats", ["raw", "normalized"])
def test_predictions_survive_any_update(make_trainer: Make, stats: str) -> None:
    generator = torch.Generator().manual_seed(0)
    trainer = make_trainer([0, 1], position=2)
    for target in trainer.target.values():  # targets differ from the critics they follow
        target += 0.1 * torch.randn(target.shape, generator=generator)
    x = torch.randn(2, 30, 16, generator=generator)
    tasks = TaskIndex(torch.arange(30).remainder(3).expand(2, 30))
    for _ in range(30):
        before = predictions(trainer, tasks, x)
        scale = 10 ** (4 * torch.rand(2, 1, generator=generator) - 2)
        targets = scale * (torch.randn(2, 30, generator=generator) + 3)
        beta = torch.full((2,), 0.3)
        update_popart(trainer, tasks, targets, beta=beta, stats=stats)  # type: ignore[arg-type]
        after = predictions(trainer, tasks, x)
        # Single precision: relative to the numbers that cancel, which are as large as the std.
        error = (after - before).abs() / (before.abs() + tasks.of(trainer.value["std"])[:, None])
        assert error.max() < 1e-5
    assert trainer.value["std"].max() > 2 and trainer.value["mean"].abs().max() > 2


def test_absent_heads_keep_everything_to_the_bit(make_trainer: Make) -> None:
    trainer = make_trainer([0], position=2)
    trainer.value["mean"][:] = torch.tensor([7.3, 0.1, -5.7])
    trainer.value["std"][:] = torch.tensor([3.3, 1.1, 0.7])
    before = {name: x.clone() for name, x in trainer.state().items()}
    tasks = TaskIndex.single(1, 1, 8, torch.device("cpu"))
    update_popart(trainer, tasks, 50 * torch.ones(1, 8), beta=torch.tensor([0.1]), stats="raw")
    after = trainer.state()
    for prefix in ("", "target."):
        for kind in ("weight", "bias"):
            old, new = before[f"{prefix}critic.4.{kind}"], after[f"{prefix}critic.4.{kind}"]
            assert torch.equal(old[:, :, [0, 2]], new[:, :, [0, 2]])
            assert not torch.equal(old[:, :, 1], new[:, :, 1])
    for name in ("value.mean", "value.std"):
        assert torch.equal(before[name][:, [0, 2]], after[name][:, [0, 2]])
        assert not torch.equal(before[name][:, 1], after[name][:, 1])


def test_statistics_follow_the_published_recursion() -> None:
    # mu' = mu + b (mean y - mu), nu' = nu + b (mean y^2 - nu), sigma'^2 = nu' - mu'^2.
    generator = torch.Generator().manual_seed(1)
    beta, mean, std = 0.05, torch.zeros(1, 2).double(), torch.ones(1, 2).double()
    mu, nu = [0.0, 0.0], [1.0, 1.0]
    tasks = TaskIndex((torch.arange(12) % 2).view(1, -1))
    for _ in range(20):
        targets = 4 * torch.randn(1, 12, generator=generator).double() + 2
        mean, std = moved_statistics(mean, std, tasks, targets, beta)
        for head in range(2):
            own = targets[0, head::2]
            mu[head] += beta * (own.mean().item() - mu[head])
            nu[head] += beta * ((own**2).mean().item() - nu[head])
    assert mean[0].tolist() == pytest.approx(mu)
    assert std[0].tolist() == pytest.approx(
        [math.sqrt(n - m * m) for m, n in zip(mu, nu, strict=True)]
    )


def stream(trainer: Trainer, mean: float, std: float, stats: str) -> tuple[float, float]:
    """Where the statistics settle when targets keep coming from one distribution."""
    generator = torch.Generator().manual_seed(2)
    tasks = TaskIndex.single(0, 1, 64, torch.device("cpu"))
    beta = torch.tensor([0.01])
    for _ in range(1500):
        targets = mean + std * torch.randn(1, 64, generator=generator)
        update_popart(trainer, tasks, targets, beta=beta, stats=stats)  # type: ignore[arg-type]
    return trainer.value["mean"].item(), trainer.value["std"].item()


def test_statistics_converge_to_those_of_the_targets(make_trainer: Make) -> None:
    mean, std = stream(make_trainer([0]), 200.0, 100.0, "raw")
    # The average of the last 1 / 0.01 batches of 64: a standard error near 1 on both.
    assert mean == pytest.approx(200, abs=4) and std == pytest.approx(100, abs=4)


def test_normalized_statistics_converge_to_the_root(make_trainer: Make) -> None:
    mean, std = stream(make_trainer([0]), 200.0, 100.0, "normalized")
    assert std == pytest.approx(math.sqrt(100), rel=0.03)
    assert mean == pytest.approx(200 / (1 + math.sqrt(100)), rel=0.03)


def test_small_spread_around_a_large_mean_is_seen() -> None:
    # nu - mu^2 in single precision would lose it: mu^2 is 1e10 and known to about 1e3.
    mean, std = torch.full((1, 1), 1e5), torch.ones(1, 1)
    targets = torch.tensor([[1e5 - 1, 1e5 + 1]])
    _, std = moved_statistics(
        mean, std, TaskIndex(torch.zeros(1, 2, dtype=torch.int64)), targets, 0.5
    )
    assert std.item() == pytest.approx(1.0, rel=1e-5)


def test_std_stays_within_bounds() -> None:
    tasks = TaskIndex(torch.zeros(1, 2, dtype=torch.int64))
    mean, std = torch.zeros(1, 1), torch.full((1, 1), 1e-4)
    assert moved_statistics(mean, std, tasks, torch.zeros(1, 2), 1.0)[1].item() == pytest.approx(
        1e-4
    )
    huge = torch.tensor([[-1e9, 1e9]])
    assert moved_statistics(mean, std, tasks, huge, 1.0)[1].item() == pytest.approx(1e6)

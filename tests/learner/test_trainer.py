"""The stacked update against a plain SAC for one run, and what must stay put."""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from cwbench.learner.heads import TaskIndex
from cwbench.learner.method import Method
from cwbench.learner.networks import Network, Params
from cwbench.learner.replay import Replay
from cwbench.learner.trainer import Trainer
from cwbench.spec.config import MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.spec.transition import Dims

Make = Callable[..., Trainer]


@pytest.mark.parametrize(("log_every", "logged"), [(0, []), (2, [0, 2, 4])])
def test_retraining_says_how_far_it_is(
    make_trainer: Make, log_every: int, logged: list[int]
) -> None:
    """Five updates of a method's own after three of SAC."""
    trainer, seen, evaluated = make_trainer([0]), list[Any](), list[int]()
    trainer.train(3)
    trainer.check_stop = lambda: seen.append(trainer.retraining)
    trainer.log_retraining = evaluated.append
    trainer.retrain(5, lambda: None, log_every=log_every)
    assert seen == [(made, 5) for made in range(5)] and evaluated == logged
    assert trainer.retraining is None
    assert (trainer.updates, trainer.retrain_updates) == (8, 5)


class PlainNet(nn.Module):
    """One network of one run with one head, from torch's own layers."""

    def __init__(self, trainer: Trainer, name: str, index: tuple[int, ...]) -> None:
        super().__init__()
        net = trainer.networks[name]
        assert isinstance(net, Network)

        def pick(key: str) -> Tensor:
            x = trainer.params[f"{name}.{key}"].detach()[index]
            return x[0] if net.per_task(f"{name}.{key}") else x

        self.linears = nn.ModuleList()
        for layer in range(net.layers + 1):
            weight = pick(f"{layer}.weight")
            linear = nn.Linear(*weight.shape)
            linear.weight.data, linear.bias.data = weight.T.clone(), pick(f"{layer}.bias").clone()
            self.linears.append(linear)
        self.norm = nn.LayerNorm(net.units[0], eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.norm(self.linears[0](x)))
        for linear in self.linears[1:-1]:
            x = nn.functional.leaky_relu(linear(x), 0.2)
        out: Tensor = self.linears[-1](x)
        return out


class PlainSAC:
    """Plain SAC for run 0, with the numbers of the published settings written out."""

    def __init__(self, trainer: Trainer, clip: float | None) -> None:
        self.actor = PlainNet(trainer, "actor", (0,))
        self.q1, self.q2 = (PlainNet(trainer, "critic", (0, twin)) for twin in (0, 1))
        self.t1, self.t2 = copy.deepcopy(self.q1), copy.deepcopy(self.q2)
        self.log_alpha = nn.Parameter(torch.tensor(1.0))
        self.clip = clip
        self.groups = [
            list(self.actor.parameters()),
            [*self.q1.parameters(), *self.q2.parameters()],
            [self.log_alpha],
        ]
        self.optimizers = [torch.optim.Adam(group, lr=1e-3, eps=1e-7) for group in self.groups]

    def act(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.actor(obs).chunk(2, -1)
        log_std = log_std.clamp(-20, 2)
        u = mean + log_std.exp() * noise
        log_density = torch.distributions.Normal(mean, log_std.exp()).log_prob(u).sum(-1)
        log_density -= (2 * (math.log(2) - u - nn.functional.softplus(-2 * u))).sum(-1)
        return torch.tanh(u), log_density

    def update(
        self, batch: tuple[Tensor, Tensor, Tensor, Tensor], now: Tensor, after: Tensor
    ) -> tuple[Tensor, Tensor]:
        obs, action, reward, next_obs = batch
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_density = self.act(next_obs, after)
            x = torch.cat([next_obs, next_action], -1)
            bootstrap = torch.min(self.t1(x), self.t2(x)).squeeze(-1) - alpha * next_density
            target = reward + 0.99 * bootstrap
        x = torch.cat([obs, action], -1)
        critic_loss = sum(
            0.5 * ((q(x).squeeze(-1) - target) ** 2).mean() for q in (self.q1, self.q2)
        )
        mine, density = self.act(obs, now)
        x = torch.cat([obs, mine], -1)
        actor_loss = (alpha * density - torch.min(self.q1(x), self.q2(x)).squeeze(-1)).mean()
        entropy = 4 * math.log(0.089 * math.sqrt(2 * math.pi * math.e))
        alpha_loss = -(self.log_alpha * (density.detach() + entropy)).mean()
        losses = (actor_loss, critic_loss, alpha_loss)
        grads = [
            torch.autograd.grad(loss, group, retain_graph=True)
            for loss, group in zip(losses, self.groups, strict=True)
        ]
        for optimizer, group, own in zip(self.optimizers, self.groups, grads, strict=True):
            norm = torch.cat([g.flatten() for g in own]).norm()
            scale = min(1.0, self.clip / float(norm)) if self.clip else 1.0
            for param, grad in zip(group, own, strict=True):
                param.grad = grad * scale
            optimizer.step()
        with torch.no_grad():
            for online, target_net in ((self.q1, self.t1), (self.q2, self.t2)):
                for p, t in zip(online.parameters(), target_net.parameters(), strict=True):
                    t.mul_(0.995).add_(0.005 * p)
        return actor_loss.detach(), torch.as_tensor(critic_loss).detach()


@pytest.mark.parametrize("clip", [None, 0.5])
def test_ten_updates_equal_a_plain_sac(make_trainer: Make, clip: float | None) -> None:
    trainer = make_trainer([3, 1, 2], sac=SACConfig(batch_size=16, clip_norm=clip))
    plain = PlainSAC(trainer, clip)
    for update in range(10):
        trainer.streams.seek(update)
        batch = trainer.replay.sample(16)
        draws = [trainer.streams.normal(f"noise-{name}", (16, 4))[0] for name in ("now", "next")]
        fields = tuple(x[0] for x in (batch.obs, batch.action, batch.reward, batch.next_obs))
        actor_loss, critic_loss = plain.update(fields, *draws)  # type: ignore[arg-type]
        trainer.train(1)
        means = trainer.statistics.take()
        assert means["actor_loss"][0] == pytest.approx(float(actor_loss), abs=1e-5)
        assert means["critic_loss"][0] == pytest.approx(float(critic_loss), rel=1e-5, abs=1e-5)
    for name, linears in (("actor", plain.actor.linears), ("critic", plain.q1.linears)):
        for layer, linear in enumerate(linears):
            assert isinstance(linear, nn.Linear)
            at = (0,) if name == "actor" else (0, 0)
            weight = trainer.params[f"{name}.{layer}.weight"].detach()[at]
            weight = weight[0] if layer == 4 else weight
            assert_close(weight, linear.weight.detach().T, atol=1e-5, rtol=0)
    target = trainer.target["critic.1.weight"][0, 1]
    assert_close(target, plain.t2.linears[1].get_parameter("weight").detach().T, atol=1e-5, rtol=0)
    assert_close(trainer.params["log_alpha"][0, 0], plain.log_alpha, atol=1e-5, rtol=0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("network", "batch_size"),
    [
        (NetworkConfig(), 32),
        (NetworkConfig(width=16, critic_head_layers=3), 32),
        (NetworkConfig(width=13), 7),  # not a multiple of any vector's length
    ],
)
def test_a_run_gives_the_same_bits_in_any_fleet_and_on_any_number_of_threads(
    make_trainer: Make, network: NetworkConfig, batch_size: int, threads: int
) -> None:
    sac = SACConfig(batch_size=batch_size, clip_norm=0.1)
    fleet = make_trainer([0, 1, 2], sac=sac, network=network)
    fleet.train(5)
    try:
        torch.set_num_threads(threads)
        alone = make_trainer([1], sac=sac, network=network)
        alone.train(5)
    finally:
        torch.set_num_threads(1)
    own = alone.state()
    assert not [name for name, x in fleet.state().items() if not torch.equal(x[1:2], own[name])]


def test_old_heads_and_temperatures_do_not_move(make_trainer: Make) -> None:
    trainer = make_trainer([0, 1], position=2)
    before = {name: x.clone() for name, x in trainer.state().items()}
    trainer.train(20)
    after = trainer.state()
    moved = 0
    for name in before:
        bare = name.removeprefix("target.")
        network = trainer.networks.get(bare.split(".")[0])
        if bare == "log_alpha" or (network and network.per_task(bare)):
            axis = trainer.task_axis(bare)
            old, new = (x[name].movedim(axis, 0) for x in (before, after))
            assert torch.equal(old[:2], new[:2]), name
            moved += not torch.equal(old[2], new[2])
    assert moved >= 4  # actor head, critic heads, their targets, alpha


def test_value_normalisation_leaves_losses_and_targets_in_their_units(make_trainer: Make) -> None:
    """Scaling and shifting the statistics, and the last layer against it, changes no target."""
    plain, scaled = make_trainer([0]), make_trainer([0])
    mean, std = 3.0, 50.0
    scaled.value["mean"] += mean
    scaled.value["std"] *= std
    with torch.no_grad():
        for table in (scaled.params, scaled.target):
            table["critic.4.weight"] /= std
            table["critic.4.bias"].sub_(mean).div_(std)
    learned = []
    for trainer in (plain, scaled):
        trainer.streams.seek(0)
        learned.append(trainer.sac_gradients(trainer.replay.sample(16)))
    one, other = learned
    assert_close(one.targets, other.targets, rtol=1e-4, atol=1e-4)
    assert_close(one.losses.critic, other.losses.critic * std**2, rtol=1e-3, atol=1e-4)


def test_gradients_of_another_batch_leave_the_update_alone(make_trainer: Make) -> None:
    plain, busy = make_trainer([0, 1]), make_trainer([0, 1])
    plain.update()
    other = busy.replay.sample_once(24, "other")  # another size: draws are per name and shape
    found, again, fresh = (busy.sac_gradients(other, draw).grads for draw in ("a-", "a-", "b-"))
    assert all(torch.equal(found[name], again[name]) for name in found)
    assert not any(torch.equal(found[name], fresh[name]) for name in busy.group("actor"))
    assert not busy.statistics.sums.any()
    busy.update()
    assert all(torch.equal(plain.params[name], busy.params[name]) for name in plain.params)


class Operations(TorchDispatchMode):
    """Counts what reaches torch's kernels, views included."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


# Stable-Baselines3's update has 1041; this one had 643 under autograd and torch.optim,
# 434 with manual gradients and a forward pass for each set of observations and actions. Two views
# are for batches of several tasks.
@pytest.mark.parametrize(("runs", "operations"), [(1, 378), (3, 385)])
def test_an_update_has_no_more_operations_than_before(
    make_trainer: Make, runs: int, operations: int
) -> None:
    """Guards speed without a clock. If a change needs more, say in the commit why."""
    trainer = make_trainer(list(range(runs)))
    trainer.train(2)  # random numbers are made, in blocks of fifty updates
    with Operations() as made:
        trainer.train(1)
    assert made.count <= operations


def test_nothing_is_worth_anything_after_a_terminal_state() -> None:
    """Two states: the first leads to the second for nothing, the second pays 1 and ends it all."""
    cpu, dims, gamma = torch.device("cpu"), Dims(2, 1, terminates=True), 0.9
    trainer = Trainer(
        [0],
        0,
        dims=dims,
        sac=SACConfig(batch_size=32, gamma=gamma, polyak=0.9, lr=1e-2),
        network=NetworkConfig(width=8, layers=2),
        schedule=ScheduleConfig(),
        device=cpu,
    )
    states = torch.eye(2)
    action = 2 * torch.rand(100, 2, 1, generator=torch.Generator().manual_seed(0)) - 1
    reward = terminated = torch.tensor([[0.0], [1.0]])
    parts = (states, action, reward, states.flip(0), terminated)
    rows = torch.cat([part.expand(100, 2, -1) for part in parts], -1).flatten(0, 1)
    replay = Replay(1, len(rows), dims, trainer.streams, live=[0])
    replay.add(0, rows[None])
    trainer.begin(Method(MethodConfig(), trainer), replay)
    with torch.no_grad():
        trainer.params["log_alpha"].fill_(-20)  # entropy counts for nothing
    trainer.train(150)
    tasks = TaskIndex.single(0, 1, 2, cpu)
    q = trainer.q(trainer.params, states[None], torch.zeros(1, 2, 1), tasks).detach()
    assert_close(q, torch.tensor([gamma, 1.0]).expand(1, 2, 2), atol=0.1, rtol=0)


def test_a_delayed_actor_moves_in_every_second_update_and_then_twice(make_trainer: Make) -> None:
    sac = SACConfig(batch_size=16, actor_every=2)
    trainer, alone = make_trainer([0, 1], sac=sac), make_trainer([1], sac=sac)

    def moved(name: str) -> bool:
        before = trainer.params[name].detach().clone()
        trainer.train(1)
        return not torch.equal(trainer.params[name], before)

    assert [moved("actor.1.weight") for _ in range(4)] == [False, True, False, True]
    for _ in range(2):  # targets move once per update, also where the actor moves twice
        target = trainer.target["critic.1.weight"].clone()
        trainer.train(1)
        online = trainer.params["critic.1.weight"].detach()
        assert_close(trainer.target["critic.1.weight"], 0.995 * target + 0.005 * online)
    assert [moved("log_alpha") for _ in range(2)] == [False, True]
    assert moved("critic.1.weight")
    assert [float(steps) for steps in trainer.optimizer.steps] == [9, 8]
    alone.train(9)
    for name, x in alone.state().items():
        assert torch.equal(trainer.state()[name][1:], x), name


def test_a_delayed_actors_first_move_is_that_of_the_same_batch(
    make_trainer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The critics' first update is that of plain SAC; the actor's first has plain gradients."""
    plain = make_trainer([0], sac=SACConfig(batch_size=16))
    delayed = make_trainer([0], sac=SACConfig(batch_size=16, actor_every=2))
    for trainer in (plain, delayed):
        trainer.train(1)
    assert torch.equal(plain.params["critic.1.weight"], delayed.params["critic.1.weight"])
    applied: list[Params] = []
    monkeypatch.setattr(delayed, "apply", applied.append)
    delayed.train(1)
    assert ["critic.1.weight" in grads for grads in applied] == [True, False]
    first, again = (grads["actor.1.weight"] for grads in applied)
    assert not torch.equal(first, again)  # other actions of the same policy

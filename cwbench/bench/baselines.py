"""Other implementations of SAC's update, to be measured beside ours. Nothing else imports this."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

OBS, ACTION = 12, 4
ROWS = 1000  # in the replay

Updates = Callable[[int], None]  # make so many updates


class Textbook:
    """SAC for one run as one would write it down: modules, three losses, three optimisers.

    Networks, batch and arithmetic are those of Continual World, as in ours.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.actor = self._network(OBS, 2 * ACTION)
        self.critics = nn.ModuleList(self._network(OBS + ACTION, 1) for _ in range(2))
        self.targets = copy.deepcopy(self.critics)
        self.log_alpha = nn.Parameter(torch.ones(()))
        self.rows = torch.randn(ROWS, 2 * OBS + ACTION + 1)
        groups = (self.actor.parameters(), self.critics.parameters(), [self.log_alpha])
        self.optimizers = [torch.optim.Adam(group, lr=1e-3) for group in groups]

    @staticmethod
    def _network(inputs: int, outputs: int) -> nn.Module:
        layers: list[nn.Module] = [nn.Linear(inputs, 256), nn.LayerNorm(256), nn.Tanh()]
        for _ in range(3):
            layers += [nn.Linear(256, 256), nn.LeakyReLU(0.2)]
        return nn.Sequential(*layers, nn.Linear(256, outputs))

    def act(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.actor(obs).chunk(2, -1)
        normal: Any = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
        u = normal.rsample()
        squeeze = 2 * (math.log(2) - u - nn.functional.softplus(-2 * u))
        return torch.tanh(u), (normal.log_prob(u) - squeeze).sum(-1)

    def values(self, critics: nn.ModuleList, obs: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([obs, action], -1)
        return torch.stack([critic(x).squeeze(-1) for critic in critics])

    def update(self) -> None:
        rows = self.rows[torch.randint(ROWS, (self.batch_size,))]
        obs, action, reward, next_obs = torch.split(rows, [OBS, ACTION, 1, OBS], -1)
        alpha = self.log_alpha.detach().exp()
        with torch.no_grad():
            next_action, density = self.act(next_obs)
            bootstrap = self.values(self.targets, next_obs, next_action).amin(0)
            wanted = reward.squeeze(-1) + 0.99 * (bootstrap - alpha * density)
        error = self.values(self.critics, obs, action) - wanted
        mine, density = self.act(obs)
        losses = [
            (alpha * density - self.values(self.critics, obs, mine).amin(0)).mean(),
            0.5 * (error**2).sum(0).mean(),
            -(self.log_alpha * (density.detach() - ACTION)).mean(),
        ]
        for optimizer, loss in zip(self.optimizers, losses, strict=True):
            # Only this optimiser's parameters: the actor's loss reaches the critics too.
            optimizer.zero_grad()
            own = optimizer.param_groups[0]["params"]
            grads = torch.autograd.grad(loss, own, retain_graph=True)
            for param, grad in zip(own, grads, strict=True):
                param.grad = grad
        for optimizer in self.optimizers:
            optimizer.step()
        with torch.no_grad():
            pairs = zip(self.critics.parameters(), self.targets.parameters(), strict=True)
            for online, target in pairs:
                target.lerp_(online, 0.005)

    def train(self, updates: int) -> None:
        for _ in range(updates):
            self.update()


def stable_baselines(batch_size: int) -> Updates | None:
    """Stable-Baselines3's update of four layers of 256, which are plain ReLU there."""
    try:
        from stable_baselines3 import SAC
        from stable_baselines3.common.logger import Logger
    except ImportError:
        return None
    model = SAC(
        "MlpPolicy",
        _make_nothing(),
        policy_kwargs={"net_arch": [256] * 4},
        batch_size=batch_size,
        buffer_size=ROWS,
        device="cpu",
    )
    model.set_logger(Logger(None, []))
    rng = np.random.default_rng(0)
    for _ in range(ROWS):
        obs, next_obs = rng.normal(size=(2, 1, OBS))
        action = rng.uniform(-1, 1, (1, ACTION))
        model.replay_buffer.add(obs, next_obs, action, np.zeros(1), np.zeros(1), [{}])
    return lambda updates: model.train(updates, batch_size)


def _make_nothing() -> Any:
    """An environment of the right shape in which nothing happens."""
    import gymnasium

    class Nothing(gymnasium.Env):  # type: ignore[misc]
        observation_space = gymnasium.spaces.Box(-1, 1, (OBS,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return np.zeros(OBS, np.float32), {}

        def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return np.zeros(OBS, np.float32), 0.0, False, False, {}

    return Nothing()

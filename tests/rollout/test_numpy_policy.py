"""The workers' numpy policy against torch."""

from typing import Any

import numpy as np
import pytest
import torch

from cwbench.learner.heads import TaskIndex
from cwbench.learner.policy import make_policy, squash
from cwbench.rollout.numpy_policy import Actor
from cwbench.spec.config import NetworkConfig


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"actor_head_layers": 2},
        {"actor_head_layers": 4},
        {"hidden": "32,8,16,24", "actor_head_layers": 2},
        {"activation": "relu", "layer_norm": "off"},
        {"activation": "tanh", "layer_norm": "off", "actor_head_layers": 4},
        {"activation": "relu"},
        {"log_std": "tanh", "log_std_range": "-5,1"},
        {"log_std_range": "-0.2,0.3"},
    ],
    ids=str,
)
def test_numpy_actor_equals_torch(options: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    policy = make_policy(12, 4, NetworkConfig(**{"width": 32, **options}))
    shapes = policy.network.shapes(3)
    params = {k: torch.randn(2, *s, generator=generator) / s[-1] ** 0.5 for k, s in shapes.items()}
    flat = torch.cat([params[name].flatten(1) for name in shapes], 1).numpy()
    layout = policy.layout(3)
    assert layout.size == flat.shape[1]
    obs, noise = (
        torch.randn(2, 7, 12, generator=generator),
        torch.randn(2, 7, 4, generator=generator),
    )
    for head in range(3):
        mean, log_std = policy(params, obs, TaskIndex.single(head, 2, 7, torch.device("cpu")))
        action, _ = squash(mean, log_std, noise)
        for run in range(2):
            actor = Actor(layout, flat[run])
            batch = actor.act(obs[run].numpy(), head, noise[run].numpy())
            np.testing.assert_allclose(batch, action[run].numpy(), atol=2e-5)
            single = actor.act(obs[run, 0].numpy(), head, noise[run, 0].numpy())
            np.testing.assert_allclose(single, action[run, 0].numpy(), atol=2e-5)


def test_actor_sees_weights_that_are_refreshed_in_place() -> None:
    layout = make_policy(12, 4, NetworkConfig(width=8, layers=2)).layout(1)
    flat = np.zeros(layout.size, np.float32)
    actor = Actor(layout, flat)
    obs, noise = np.ones(12, np.float32), np.zeros(4, np.float32)
    assert not actor.act(obs, 0, noise).any()
    layout.views(flat)["actor.2.bias"][:] = 1.0
    np.testing.assert_allclose(actor.act(obs, 0, noise), np.tanh(1.0), rtol=1e-6)

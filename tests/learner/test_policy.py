"""The actor's distribution against torch.distributions and known values."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.testing import assert_close

from cwbench.learner.policy import gaussian_kl, make_policy, squash
from cwbench.spec.config import NetworkConfig


def test_log_std_stays_in_its_range() -> None:
    x = torch.tensor([-1e4, 0.0, 1e4])
    tanh = make_policy(12, 4, NetworkConfig(log_std="tanh")).log_std(x)
    assert_close(tanh, torch.tensor([-20.0, -9.0, 2.0]))  # -20 + 11 (tanh x + 1)
    clip = make_policy(12, 4, NetworkConfig(log_std_range="-5,1")).log_std(x)
    assert_close(clip, torch.tensor([-5.0, 0.0, 1.0]))


def test_squash_matches_the_density_of_a_transformed_normal() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, log_std, noise = (torch.randn(1, 50, 4, generator=generator) for _ in range(3))
    log_std = log_std.clamp(-2, 0)
    action, log_density = squash(mean, log_std, noise)
    base = torch.distributions.Normal(mean, log_std.exp())
    reference = torch.distributions.TransformedDistribution(
        base, [torch.distributions.transforms.TanhTransform(cache_size=1)]
    )
    sample = torch.tanh(mean + log_std.exp() * noise)
    assert_close(action, sample)
    inside = sample.abs().amax(-1) < 0.999  # where atanh of the reference is still exact
    assert inside.sum() > 20
    assert_close(
        log_density[inside], reference.log_prob(sample).sum(-1)[inside], rtol=1e-3, atol=1e-3
    )


def test_kl_matches_textbook() -> None:
    """KL(N(0, 1) || N(1, 2)) and the other way round, derived on paper."""
    zero, one, log_two = torch.tensor(0.0), torch.tensor(1.0), torch.tensor(2.0).log()
    assert gaussian_kl(zero, zero, one, log_two).item() == pytest.approx(
        math.log(2) + (1 + 1) / 8 - 1 / 2
    )
    assert gaussian_kl(one, log_two, zero, zero).item() == pytest.approx(
        -math.log(2) + (4 + 1) / 2 - 1 / 2
    )


def test_kl_matches_torch_on_random_gaussians() -> None:
    generator = torch.Generator().manual_seed(0)
    mean_p, log_p, mean_q, log_q = torch.randn(4, 1000, generator=generator).double()
    expected = kl_divergence(Normal(mean_p, log_p.exp()), Normal(mean_q, log_q.exp()))
    assert torch.allclose(gaussian_kl(mean_p, log_p, mean_q, log_q), expected, rtol=1e-9)

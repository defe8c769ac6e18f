"""The optimiser against torch's, and its joined step against the separate ones."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from cwbench.learner.adam import Adam
from cwbench.learner.runaxis import clip_global_norm
from cwbench.spec.config import SACConfig
from cwbench.spec.options import field_of

SHAPES = {"actor.0": (3, 12, 16), "actor.b": (3, 16), "critic.0": (3, 2, 12, 16), "alpha": (3, 2)}
GROUPS = [["actor.0", "actor.b"], ["critic.0"], ["alpha"]]
CLIP, POLYAK = 0.5, 0.9


def params() -> dict[str, Tensor]:
    draws = torch.Generator().manual_seed(0)
    return {n: torch.randn(s, generator=draws).requires_grad_() for n, s in SHAPES.items()}


def gradients() -> Iterator[dict[str, Tensor]]:
    draws = torch.Generator().manual_seed(1)
    for _ in range(5):
        yield {name: torch.randn(shape, generator=draws) for name, shape in SHAPES.items()}


def test_steps_are_those_of_torch() -> None:
    ours, theirs = params(), params()
    own = Adam(ours, lr=1e-2, eps=1e-7)
    other = torch.optim.Adam(theirs.values(), lr=1e-2, eps=1e-7)
    for grads in gradients():
        own.step(grads)
        for name, grad in grads.items():
            theirs[name].grad = grad
        other.step()
    for name in SHAPES:
        assert_close(ours[name], theirs[name], rtol=1e-6, atol=1e-6)


def test_a_weight_without_gradient_rests_with_the_smallest_epsilon() -> None:
    smallest = field_of(SACConfig, "adam_eps").metadata["bounds"]["minimum"]
    ours, before = params(), params()
    Adam(ours, lr=1e-2, eps=smallest).step({n: torch.zeros(s) for n, s in SHAPES.items()})
    assert all(torch.equal(ours[name], before[name]) for name in SHAPES)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
def test_the_joined_step_equals_the_separate_ones() -> None:
    joined, apart = params(), params()
    one, two = Adam(joined, lr=1e-2, eps=1e-7), Adam(apart, lr=1e-2, eps=1e-7)
    targets = [{"critic.0": torch.zeros(SHAPES["critic.0"])} for _ in range(2)]
    for grads in gradients():
        one.fused_step({k: g.clone() for k, g in grads.items()}, GROUPS, CLIP, targets[0], POLYAK)
        for names in GROUPS:
            clip_global_norm([grads[name] for name in names], CLIP)
        two.step(grads)
        targets[1]["critic.0"].lerp_(apart["critic.0"].detach(), 1 - POLYAK)
    for name in SHAPES:
        assert_close(joined[name], apart[name], rtol=1e-5, atol=1e-6)
    assert_close(targets[0], targets[1], rtol=1e-5, atol=1e-6)
    assert one.steps == two.steps == [5]


def test_a_run_gets_the_same_bits_in_any_fleet() -> None:
    """Thirteen numbers per run fill no vector: torch rounds what is left over differently."""
    draws = torch.Generator().manual_seed(2)
    start = torch.randn(3, 13, generator=draws)
    fleet, alone = {"x": start.clone()}, {"x": start[1:2].clone()}
    optimizers = [Adam(params, lr=1e-3, eps=1e-7) for params in (fleet, alone)]
    for _ in range(500):
        grad = torch.randn(3, 13, generator=draws)
        optimizers[0].step({"x": grad})
        optimizers[1].step({"x": grad[1:2].clone()})
    assert torch.equal(fleet["x"][1:2], alone["x"])

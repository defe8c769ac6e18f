"""Run-axis helpers against plain loops over runs."""

import torch
from torch.testing import assert_close

from cwbench.learner.runaxis import clip_global_norm, global_norm, like, per_run_sum

GENERATOR = torch.Generator().manual_seed(0)


def tensors() -> list[torch.Tensor]:
    return [torch.randn(shape, generator=GENERATOR) for shape in ((3, 5), (3, 4, 6), (3, 2, 4, 6))]


def test_per_run_sum_equals_a_loop() -> None:
    for x in tensors():
        assert_close(per_run_sum(x), torch.stack([run.sum() for run in x]))


def test_like_aligns_one_number_per_run() -> None:
    value = torch.tensor([1.0, 10.0, 100.0])
    for x in tensors():
        expected = torch.stack([number * run for number, run in zip(value, x, strict=True)])
        assert_close(like(value, x) * x, expected)


def test_clipping_scales_each_run_by_itself() -> None:
    group = tensors()
    for x in group:
        x[1] *= 100  # one run with a large gradient must not shrink the others
    limit = float(global_norm(group)[0]) * 1.01
    for run in range(3):
        alone = [x[run].clone() for x in group]
        norm = torch.cat([x.flatten() for x in alone]).norm()
        expected = [x * min(1.0, limit / float(norm)) for x in alone]
        clipped = [x.clone() for x in group]
        clip_global_norm(clipped, limit)
        for x, wanted in zip(clipped, expected, strict=True):
            assert_close(x[run], wanted)

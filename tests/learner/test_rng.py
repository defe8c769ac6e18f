"""Streams: SplitMix64's published numbers, their distributions, and independence of order."""

import pytest
import torch
from scipy import stats

from cwbench.learner import rng
from cwbench.learner.rng import BLOCK, Streams

CPU = torch.device("cpu")


def test_hash_gives_the_published_splitmix64_sequence() -> None:
    # The five first outputs for seed 1234567, as listed with the public-domain reference code.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    bits = rng.hash_bits(torch.tensor(1234567), torch.arange(5))
    assert [x % 2**64 for x in bits.tolist()] == expected


def test_distributions() -> None:
    streams = Streams([3], 0, CPU)
    uniform = streams.uniform("u", (20_000,)).flatten()
    normal = streams.normal("n", (20_000,)).flatten()
    assert float(uniform.min()) >= 0 and float(uniform.max()) < 1
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 1e-3
    assert stats.kstest(normal.numpy(), "norm").pvalue > 1e-3
    assert abs(float((normal[1:] * normal[:-1]).mean())) < 4 / 20_000**0.5


def test_indices_are_uniform_over_a_size_that_is_no_power_of_two() -> None:
    streams = Streams([3], 0, CPU)
    index = streams.index("i", 70_000, torch.tensor(7)).flatten()
    counts = torch.bincount(index, minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_a_size_is_a_number_or_a_tensor() -> None:
    streams = Streams([3, 4], 0, CPU)
    one, other = (streams.index("i", 9, size) for size in (7, torch.tensor(7)))
    assert torch.equal(one, other) and one.dtype == torch.int64
    each = streams.index("i", 9, torch.tensor([1, 7, 1] * 3))
    assert (each[:, 1::3] == one[:, 1::3]).all() and not each[:, ::3].any()


@pytest.mark.parametrize("size", [20_000_000, 2**26 + 1, 80_000_000, 10**9])
def test_large_sizes_do_not_overflow(size: int) -> None:
    streams = Streams([3], 0, CPU)
    index = streams.index("i", 100_000, torch.tensor(size), large=size >= rng.LARGE).flatten()
    assert int(index.min()) >= 0 and int(index.max()) < size
    assert abs(float(index.double().mean()) / size - 0.5) < 0.01


@pytest.mark.parametrize("size", [1, 7, 1_000_000, 2**26, 10**9, 2**40])
def test_an_index_is_the_product_of_bits_and_size_without_its_last_38_bits(size: int) -> None:
    bits = [0, 1, 2**19 - 1, 2**19, 2**37 + 12_345, 2**38 - 1]
    expected = [number * size >> 38 for number in bits]  # Python's integers have no limit
    assert rng.to_index(torch.tensor(bits), torch.tensor(size), large=True).tolist() == expected
    if size < rng.LARGE:
        assert (
            rng.to_index(torch.tensor(bits), torch.tensor(size), large=False).tolist() == expected
        )


def test_a_draw_depends_on_seed_position_name_and_update_only() -> None:
    one = Streams([5, 6], 2, CPU)
    other = Streams([9, 6, 5], 2, CPU)  # another fleet, other draws before, another block start
    for update in (0, 7, BLOCK + 3, 3 * BLOCK):
        one.seek(update)
        expected = one.normal("x", (4, 3))
        other.seek(update)
        other.uniform("unrelated", (5,))
        assert torch.equal(other.normal("x", (4, 3))[[2, 1]], expected)
    draws = [
        Streams([5], 2, CPU).normal("x", (8,)),
        Streams([5], 3, CPU).normal("x", (8,)),
        Streams([6], 2, CPU).normal("x", (8,)),
        Streams([5], 2, CPU).normal("y", (8,)),
    ]
    assert len({tuple(draw.flatten().tolist()) for draw in draws}) == 4


def test_consecutive_updates_do_not_repeat() -> None:
    streams = Streams([5], 0, CPU)
    seen = set()
    for update in range(2 * BLOCK):
        streams.seek(update)
        seen |= set(streams.normal("x", (16,)).flatten().tolist())
    assert len(seen) > 0.999 * 2 * BLOCK * 16


def test_a_single_draw_depends_on_seed_position_and_name_and_on_no_update() -> None:
    size = torch.tensor(1000)
    expected = Streams([5, 6], 2, CPU).index_once("x", 50, size)
    other = Streams([6, 9], 2, CPU)
    other.seek(77)
    assert torch.equal(other.index_once("x", 50, size)[0], expected[1])
    different = [
        expected[0],
        other.index_once("y", 50, size)[0],
        Streams([6], 3, CPU).index_once("x", 50, size)[0],
        Streams([6], 2, CPU).index("x", 50, size)[0],
    ]
    assert not any(torch.equal(draw, expected[1]) for draw in different)
    counts = torch.bincount(other.index_once("i", 70_000, torch.tensor(7))[0], minlength=7)
    assert len(counts) == 7 and stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_large_draws_depend_on_seed_and_update_alone() -> None:
    device = torch.device("cpu")
    fleet, alone = Streams([3, 5], 1, device), Streams([5], 1, device)
    seen = []
    for update in (0, 7, 120):
        fleet.seek(update)
        alone.seek(update)
        seen.append(fleet.large_normal("x", 1001))
        assert torch.equal(seen[-1][1:], alone.large_normal("x", 1001))
    assert len({float(x[0, 0]) for x in seen} | {float(x[1, 0]) for x in seen}) == 6


def test_large_normal_draws_of_neighbouring_updates_share_no_number() -> None:
    streams, seen = Streams([3], 1, torch.device("cpu")), []
    for update in range(3):
        streams.seek(update)
        seen.append(streams.large_normal("x", 1000))
    assert len(torch.stack(seen).unique()) > 2990  # some are equal in 32 bits


def test_large_uniform_draws_depend_on_seed_and_update_alone() -> None:
    device = torch.device("cpu")
    fleet, alone = Streams([3, 5], 1, device), Streams([5], 1, device)
    seen = []
    for update in (0, 1, 120):
        fleet.seek(update)
        alone.seek(update)
        seen.append(fleet.large_uniform("x", 10_000))
        assert torch.equal(seen[-1][1:], alone.large_uniform("x", 10_000))
    together = torch.stack(seen).flatten()
    assert len(together.unique()) > 59_000  # of 2**24 numbers
    assert stats.kstest(together.numpy(), "uniform").pvalue > 1e-3


def test_large_draws_are_standard_normal() -> None:
    x = Streams([0], 0, torch.device("cpu")).large_normal("x", 200_000)[0]
    assert float(x.mean()) == pytest.approx(0, abs=0.01)
    assert float(x.std()) == pytest.approx(1, abs=0.01)
    assert float((x[:100_000] * x[100_000:]).mean()) == pytest.approx(0, abs=0.015)  # the pairs


def test_draws_outside_updates_have_their_names() -> None:
    streams = Streams([0, 1], 0, torch.device("cpu"))
    uniform = streams.uniform_once("a", 1000)
    assert torch.equal(uniform, streams.uniform_once("a", 1000))
    assert not torch.equal(uniform, streams.uniform_once("b", 1000))
    assert float(uniform.min()) >= 0 and float(uniform.max()) < 1
    assert float(streams.normal_once("a", 10_000).std()) == pytest.approx(1, abs=0.03)

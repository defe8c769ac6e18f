"""Random numbers that depend on nothing but (run seed, position, name, update).

Each stream is SplitMix64: number i of a stream is a hash of key + i * GOLDEN, so any number can be
had without the ones before it. Hence a run draws the same numbers alone and in any fleet, after a
restart and on any device, and there is no generator state to save. Numbers are made in blocks of
many updates, because one small draw per update would cost more than the update's arithmetic.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cwbench.spec.errors import UserError

GOLDEN = 0x9E3779B97F4A7C15
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
BLOCK = 50


def _signed(x: int) -> int:
    """The two's complement reading of 64 bits: torch has no unsigned 64-bit arithmetic."""
    x &= (1 << 64) - 1
    return x - (1 << 64) if x >> 63 else x


def key(*parts: int | str) -> int:
    """The start of a stream, from what names it."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical shift to the right (torch's is arithmetic)."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def hash_bits(keys: Tensor, counters: Tensor) -> Tensor:
    """64 random bits for each pair of a key and a counter, broadcast."""
    z = keys + (counters + 1) * _signed(GOLDEN)
    z = (z ^ _shift(z, 30)) * _signed(MIX_1)
    z = (z ^ _shift(z, 27)) * _signed(MIX_2)
    return z ^ _shift(z, 31)


def to_uniform(bits: Tensor) -> Tensor:
    """Uniform float32 in [0, 1), on a grid of 2**-24."""
    return _shift(bits, 40).float() * 2.0**-24


def to_normal(bits: Tensor) -> Tensor:
    """Standard normal float32 by Box-Muller: the high half gives the radius, the low the angle."""
    radius = (_shift(bits, 32).float() + 0.5) * 2.0**-32
    angle = (bits & 0xFFFFFFFF).float() * (2 * math.pi * 2.0**-32)
    return (-2 * radius.log()).sqrt() * angle.cos()


def to_normal_pairs(bits: Tensor) -> Tensor:
    """Two standard normal numbers from each 64 bits: [R, n] -> [R, 2n]."""
    radius = (-2 * ((_shift(bits, 32).float() + 0.5) * 2.0**-32).log()).sqrt()
    angle = (bits & 0xFFFFFFFF).float() * (2 * math.pi * 2.0**-32)
    return torch.cat([radius * angle.cos(), radius * angle.sin()], -1)


def many_normals(keys: Tensor, number: Tensor, count: int) -> Tensor:
    """Draw `number` [1] of the streams that begin with `keys` [R, 1]: [R, count]."""
    pairs = -(-count // 2)
    counters = torch.arange(pairs, device=keys.device) + number * pairs
    return to_normal_pairs(hash_bits(keys, counters))[:, :count]


def many_uniforms(keys: Tensor, number: Tensor, count: int) -> Tensor:
    """As `many_normals`, uniform in [0, 1)."""
    return to_uniform(hash_bits(keys, torch.arange(count, device=keys.device) + number * count))


LARGE = 2**26  # from here on, 38 bits times a size do not fit 64


def to_index_bits(bits: Tensor) -> Tensor:
    """38 bits, for `to_index`."""
    return _shift(bits, 26)


def to_index(bits: Tensor, size: Tensor | int, *, large: bool) -> Tensor:
    """bits * size / 2**38, rounded down: uniform in 0..size-1.

    If sizes may be LARGE, the two halves of the bits are multiplied one by one.
    """
    if not large:
        return _shift(bits * size, 38)
    high, low = bits >> 19, bits & (2**19 - 1)
    return (high * size + (low * size >> 19)) >> 19


def uniform(seeds: Sequence[int], name: str, shape: tuple[int, ...]) -> Tensor:
    """One draw outside any update, for initial weights: [R, *shape] in [0, 1)."""
    keys = torch.tensor([_signed(key(seed, name)) for seed in seeds])
    counters = torch.arange(math.prod(shape))
    return to_uniform(hash_bits(keys[:, None], counters)).view(len(seeds), *shape)


# In messages.
KINDS: dict[Callable[[Tensor], Tensor], str] = {
    to_normal: "normal",
    to_uniform: "uniform",
    to_index_bits: "index",
}


@dataclass
class _Draw:
    shape: tuple[int, ...]
    keys: Tensor  # [R, 1]
    block: Tensor  # [BLOCK, R, *shape]
    convert: Callable[[Tensor], Tensor]
    filled: bool = False


class Streams:
    """Named draws for the updates of one segment position, one stream per run and name."""

    def __init__(self, seeds: Sequence[int], position: int, device: torch.device) -> None:
        self.seeds = list(seeds)
        self.position = position
        self.device = device
        self.update = 0  # number of the update that draws now
        self.drawn: set[str] | None = None  # names, by a hook that is checked
        self._start = 0
        self._draws: dict[str, _Draw] = {}
        self._kept_keys: dict[tuple[str, str], Tensor] = {}
        # On an accelerator the offset in the block is a tensor: a captured update advances it, and
        # the number of the update too.
        self._slot = torch.zeros(1, dtype=torch.int64, device=device)
        self._number = torch.zeros(1, dtype=torch.int64, device=device)

    def seek(self, update: int) -> None:
        """Draw for this update next."""
        self.update = update
        if not self._start <= update < self._start + BLOCK:
            self._start = update
            for draw in self._draws.values():
                draw.filled = False
        if self.device.type != "cpu":
            self._slot.fill_(update - self._start)
            self._number.fill_(update)

    def _note(self, name: str) -> None:
        if self.drawn is None:
            return
        if name in self.drawn:
            raise UserError(
                f"random numbers {name!r} are drawn twice in one hook, and would be the same",
                "give each draw a name of its own",
            )
        self.drawn.add(name)

    @property
    def left(self) -> int:
        """Updates, this one included, until the block ends."""
        return self._start + BLOCK - self.update

    def fill(self) -> None:
        """Make the numbers of this block for every draw that has been used before."""
        for draw in self._draws.values():
            if not draw.filled:
                self._fill(draw)

    def advance(self) -> None:
        """Part of a captured update: read the next one's numbers afterwards."""
        self._slot.add_(1)
        self._number.add_(1)

    def normal(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """[R, *shape], standard normal."""
        return self._take(name, shape, to_normal)

    def uniform(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """[R, *shape], uniform in [0, 1)."""
        return self._take(name, shape, to_uniform)

    def large_normal(
        self, name: str, count: int, fast: Callable[[Any], Any] = lambda function: function
    ) -> Tensor:
        """[R, count], standard normal, made in each update: a block of fifty would be too large.

        `fast` may compile the function that makes them.
        """
        made: Tensor = fast(many_normals)(*self._large(name), count)
        return made

    def large_uniform(self, name: str, count: int) -> Tensor:
        """[R, count], uniform in [0, 1), made in each update as `large_normal`."""
        return many_uniforms(*self._large(name), count)

    def _large(self, name: str) -> tuple[Tensor, Tensor]:
        """What a large draw is made from: the runs' keys and the number of the update."""
        self._note(name)
        if self.device.type == "cpu":
            self._number.fill_(self.update)
        return self._named_keys("large", name), self._number

    def index(self, name: str, count: int, size: Tensor | int, *, large: bool = False) -> Tensor:
        """[R, count], uniform in 0..size-1 with replacement.

        The size is an int64 tensor where it changes between updates, and may be one per column.
        """
        return to_index(self.index_bits(name, count), size, large=large)

    def index_bits(self, name: str, count: int) -> Tensor:
        """[R, count], what `to_index` makes rows from."""
        return self._take(name, (count,), to_index_bits)

    def index_once(self, name: str, count: int, size: Tensor | int) -> Tensor:
        """As `index`, but outside updates and one time only, such as at a task's end.

        Not made in blocks: a block of fifty large draws would waste memory.
        """
        return to_index(self.index_bits_once(name, count), size, large=True)

    def index_bits_once(self, name: str, count: int) -> Tensor:
        """As `index_bits`, but outside updates."""
        return to_index_bits(self._once(name, count))

    def normal_once(self, name: str, count: int) -> Tensor:
        """[R, count], standard normal, outside updates."""
        return to_normal(self._once(name, count))

    def uniform_once(self, name: str, count: int) -> Tensor:
        """[R, count], uniform in [0, 1), outside updates."""
        return to_uniform(self._once(name, count))

    def _once(self, name: str, count: int) -> Tensor:
        return hash_bits(self._keys("once", name), torch.arange(count, device=self.device))

    def _named_keys(self, purpose: str, name: str) -> Tensor:
        """As `_keys`, made once: a captured update copies nothing to a device."""
        if (purpose, name) not in self._kept_keys:
            self._kept_keys[purpose, name] = self._keys(purpose, name)
        return self._kept_keys[purpose, name]

    def _keys(self, purpose: str, name: str) -> Tensor:
        keys = [_signed(key(seed, purpose, self.position, name)) for seed in self.seeds]
        return torch.tensor(keys, device=self.device)[:, None]

    def _take(
        self, name: str, shape: tuple[int, ...], convert: Callable[[Tensor], Tensor]
    ) -> Tensor:
        self._note(name)
        draw = self._draws.get(name)
        if draw is None:
            draw = _Draw(shape, self._keys("update", name), torch.empty(0), convert)
            self._draws[name] = draw
        if draw.shape != shape or draw.convert is not convert:
            before, now = (
                f"{KINDS[kind]} {list(size)}"
                for kind, size in ((draw.convert, draw.shape), (convert, shape))
            )
            raise UserError(
                f"random numbers {name!r} were {before}, now {now}",
                "give each draw a name of its own",
            )
        if not draw.filled:
            self._fill(draw)
        if self.device.type == "cpu":
            return draw.block[self.update - self._start]
        return draw.block.index_select(0, self._slot).squeeze(0)

    def _fill(self, draw: _Draw) -> None:
        numel = math.prod(draw.shape)
        first = self._start * numel
        counters = torch.arange(first, first + BLOCK * numel, device=self.device)
        bits = hash_bits(draw.keys, counters.view(BLOCK, 1, numel))
        numbers = draw.convert(bits).view(BLOCK, len(self.seeds), *draw.shape)
        if draw.block.numel():
            draw.block.copy_(numbers)  # a captured update reads from this memory
        else:
            draw.block = numbers.clone()
        draw.filled = True

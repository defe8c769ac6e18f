"""Sharing work out over workers."""

from collections.abc import Sequence


def deal(costs: Sequence[float], others: Sequence[float]) -> list[list[int]]:
    """Numbers of the costs for each worker, who has `others` to do for other fleets already.

    Workers should be even in what they do for this fleet, since it waits for the slowest, and in
    what they do in all. So the sum over workers of own**2 + all**2 is made small: the largest cost
    goes first to whoever is lowest, then pairs of workers exchange what helps.
    """
    shares: list[list[int]] = [[] for _ in others]
    height = list(others)  # own + all; the sum's slope is twice that
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        lowest = height.index(min(height))
        shares[lowest].append(number)
        height[lowest] += 2 * costs[number]
    while _exchange(costs, shares, height):
        pass
    return shares


def _exchange(costs: Sequence[float], shares: list[list[int]], height: list[float]) -> bool:
    """The best exchange of the highest worker for whom one helps; False if there is none."""
    # One of each cost is enough; nothing may be taken in return.
    offers = [[[n] for n in {costs[n]: n for n in share}.values()] for share in shares]
    for high in sorted(range(len(shares)), key=lambda worker: -height[worker]):
        exchanges = [
            (less * (height[high] - height[low] - 2 * less), less, low, given, taken)
            for low in range(len(shares))
            for given in offers[high]
            for taken in ([], *offers[low])
            for less in [costs[given[0]] - sum(costs[n] for n in taken)]
        ]
        gain, less, low, given, taken = max(exchanges, default=(0.0, 0.0, 0, [], []))
        if gain > 1e-9:
            shares[high] = [n for n in shares[high] if n not in given] + taken
            shares[low] = [n for n in shares[low] if n not in taken] + given
            height[high] -= 2 * less
            height[low] += 2 * less
            return True
    return False

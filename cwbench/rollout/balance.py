"""Assigns lanes to workers so that all are equally busy."""

from collections.abc import Sequence


def assign_lanes(costs: Sequence[float], loads: Sequence[float]) -> list[list[int]]:
    """Indices of lanes for each worker, given each lane's cost and each worker's other load.

    Workers should be equally busy for this group, because it waits for the slowest, and in total.
    So the sum over workers of own**2 + total**2 is made small: lanes are assigned in order of
    falling cost to the lowest worker, then pairs of workers exchange lanes while that helps.
    """
    shares: list[list[int]] = [[] for _ in loads]
    height = list(loads)  # own + total, half of the sum's slope
    for lane in sorted(range(len(costs)), key=lambda lane: -costs[lane]):
        lowest = height.index(min(height))
        shares[lowest].append(lane)
        height[lowest] += 2 * costs[lane]
    while _exchange(costs, shares, height):
        pass
    return shares


def _exchange(costs: Sequence[float], shares: list[list[int]], height: list[float]) -> bool:
    """Make the best exchange of the highest worker that has one; False if no worker has."""
    # One lane of each cost is enough. A lane may also move without another in return.
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

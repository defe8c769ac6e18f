"""How lanes are assigned to workers."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cwbench.envs.metaworld import step_cost
from cwbench.rollout.balance import assign_lanes
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS


def loads(costs: list[float], shares: list[list[int]]) -> list[float]:
    return [sum(costs[number] for number in share) for share in shares]


def unevenness(costs: list[float], shares: list[list[int]], others: list[float]) -> float:
    own = loads(costs, shares)
    return sum(a**2 + (a + b) ** 2 for a, b in zip(own, others, strict=True))


def test_two_groups_of_a_hundred_runs_on_sixteen_workers() -> None:
    """Largest first alone leaves two workers a fifth above the mean, in both groups the same."""
    costs = [step_cost(task, MetaWorldConfig()) for task in CW_TASKS] * 5
    others = [0.0] * 16
    for _ in range(2):
        own = loads(costs, assign_lanes(costs, others))
        assert max(own) < 1.1 * sum(own) / 16
        others = [a + b for a, b in zip(others, own, strict=True)]
    assert max(others) < 1.05 * sum(others) / 16


def test_exchanges_find_the_even_shares() -> None:
    """Largest first gives 3 + 2 + 2 and 3 + 2."""
    assert loads([3, 3, 2, 2, 2], assign_lanes([3, 3, 2, 2, 2], [0, 0])) == [6, 6]


def test_a_worker_that_is_busy_for_other_groups_gets_less() -> None:
    assert loads([1, 1, 1, 1], assign_lanes([1, 1, 1, 1], [4, 1, 1])) == [0, 2, 2]
    assert loads([1, 1, 1, 1, 1], assign_lanes([1, 1, 1, 1, 1], [1, 0, 0])) == [1, 2, 2]


costs_and_others = st.tuples(
    st.lists(st.sampled_from([0.83, 0.95, 1.0, 1.14, 1.31, 3.0]), max_size=9),
    st.lists(st.sampled_from([0.0, 0.9, 2.1]), min_size=1, max_size=3),
)


@settings(deadline=None)
@given(costs_and_others)
def test_every_lane_is_assigned_once_and_no_exchange_helps(
    given_: tuple[list[float], list[float]],
) -> None:
    costs, others = given_
    shares = assign_lanes(costs, others)
    assert sorted(itertools.chain(*shares)) == list(range(len(costs)))
    least = unevenness(costs, shares, others)
    owner = {number: worker for worker, share in enumerate(shares) for number in share}
    for one, other in itertools.permutations(owner, 2):
        swapped = [
            [{one: other, other: one}.get(number, number) for number in share] for share in shares
        ]
        assert unevenness(costs, swapped, others) >= least - 1e-6
    for number, worker in itertools.product(owner, range(len(others))):
        moved = [[n for n in share if n != number] for share in shares]
        moved[worker].append(number)
        assert unevenness(costs, moved, others) >= least - 1e-6


def test_workers_without_lanes() -> None:
    assert assign_lanes([], [0.0, 0.0]) == [[], []]
    assert assign_lanes([1.0], [0.5, 0.0, 0.0]) == [[], [0], []]


@pytest.mark.parametrize("runs", [3, 10, 15])
def test_few_lanes_go_to_workers_of_their_own(runs: int) -> None:
    costs = [step_cost(task, MetaWorldConfig()) for task in (CW_TASKS * 2)[:runs]]
    assert max(map(len, assign_lanes(costs, [0.0] * 16))) == 1

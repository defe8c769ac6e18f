"""The published sequences: Continual World's CW10 and CW20, triplets CW3 and their repeats CW6."""

from cwbench.spec.tasks import CW_TASKS

# The sixth holds stick-pull twice on purpose: so does the list it was published from.
TRIPLETS = (
    (6, 8, 0),
    (0, 8, 2),
    (4, 3, 1),
    (1, 7, 3),
    (2, 7, 3),
    (4, 9, 4),
    (8, 5, 9),
    (2, 7, 9),
)


def _tasks(ids: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(CW_TASKS[task] for task in ids)


PUBLISHED: dict[str, tuple[str, ...]] = {
    **{f"cw3-{number}": _tasks(ids) for number, ids in enumerate(TRIPLETS, start=1)},
    **{f"cw6-{number}": _tasks(ids * 2) for number, ids in enumerate(TRIPLETS, start=1)},
    "cw10": CW_TASKS,
    "cw20": CW_TASKS * 2,
}

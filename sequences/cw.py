"""Continual World's CW10 and CW20, RECALL's triplets CW3 and CW6, and orders made from the ten."""

import hashlib

from cwbench.sequences.sequence import Sequence
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
CONTINUAL_WORLD = "Continual World, Wolczyk et al. 2021"


def _triplet(number: int, ids: tuple[int, ...], repeats: int) -> Sequence:
    tasks = tuple(CW_TASKS[task] for task in ids) * repeats
    return Sequence(f"cw{len(tasks)}-{number}", tasks, source=CONTINUAL_WORLD)


SEQUENCES = (
    *(_triplet(number, ids, 1) for number, ids in enumerate(TRIPLETS, start=1)),
    *(_triplet(number, ids, 2) for number, ids in enumerate(TRIPLETS, start=1)),
    Sequence("cw10", CW_TASKS, source=CONTINUAL_WORLD),
    Sequence("cw20", CW_TASKS * 2, source=CONTINUAL_WORLD, summary="cw10 twice"),
    Sequence("cw100", CW_TASKS * 10, source="cwbench", summary="cw10 ten times"),
)


def random_order(number: int) -> Sequence:
    """The ten tasks in an order that depends on the number alone, on every machine."""
    name = f"orders-cw10-{number}"
    key = {task: hashlib.sha256(f"{name} {task}".encode()).digest() for task in CW_TASKS}
    return Sequence(name, tuple(sorted(CW_TASKS, key=key.__getitem__)), source="cwbench")

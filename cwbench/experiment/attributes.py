"""What a method's attributes hold, and which of them have changed."""

from collections.abc import Sequence
from typing import Any

from torch.utils._pytree import tree_leaves

from cwbench.learner.method import Method

Attributes = dict[str, list[tuple[Any, int]]]  # objects, and versions of those that are tensors


def attributes(method: Method[Any]) -> Attributes:
    """What attributes hold, also those of the method's classes: a list there may grow."""
    classes = [vars(cls) for cls in type(method).__mro__ if cls not in Method.__mro__]
    tables = (*reversed(classes), vars(method))
    inherited = vars(Method(method.configs[0], method.trainer))
    return {
        name: [(x, getattr(x, "_version", 0)) for x in tree_leaves(value)]
        for table in tables
        for name, value in table.items()
        if name not in inherited
    }


def changed(before: Attributes, after: Attributes) -> list[str]:
    """Names of attributes that are new, or hold other objects or changed tensors."""
    return [name for name, now in after.items() if not _same(before.get(name, []), now)]


def _same(one: Sequence[tuple[Any, int]], other: Sequence[tuple[Any, int]]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a[0] is b[0] and a[1] == b[1] for a, b in pairs)

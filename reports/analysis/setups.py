"""Settings: the groups of one setup on several sequences, their titles, order and colours."""

from collections.abc import Sequence
from itertools import chain, count

from cwbench.reports.analysis import names
from cwbench.reports.analysis.study import Group
from cwbench.store.marks import mark

PALETTE = 8  # colours, of figures and of the page
Setups = dict[str, list[Group]]  # setup -> its groups, one per sequence


def by_setup(groups: Sequence[Group]) -> Setups:
    """Setup -> its groups, in the order of the study."""
    found: Setups = {}
    for group in sorted(groups, key=lambda g: (names.method_order(g.method), g.label != g.method)):
        found.setdefault(group.setup, []).append(group)
    return found


def main_setups(groups: Sequence[Group]) -> Setups:
    """Of each version of a method the default options; all settings if those were not run."""
    setups = by_setup(groups)
    defaults = {(g.method, g.version) for g in groups if g.label == g.method}
    return {
        setup: rows
        for setup, rows in setups.items()
        if rows[0].label == rows[0].method or (rows[0].method, rows[0].version) not in defaults
    }


def joined(parts: Sequence[Setups]) -> Setups:
    """The settings of several families, for what they share: a legend, colours."""
    return by_setup([group for part in parts for rows in part.values() for group in rows])


def titles(setups: Setups) -> tuple[str, ...]:
    """Column titles; settings that would read the same get the start of their fingerprint."""
    plain = [rows[0].title for rows in setups.values()]
    return tuple(
        title if plain.count(title) == 1 else f"{title} ({mark(setup)})"
        for title, setup in zip(plain, setups, strict=True)
    )


def slots(setups: Setups) -> list[int]:
    """Index of each setting in the palette, no two alike: the first PALETTE differ in colour.

    The first methods of the registry keep theirs in every figure; others take what is free.
    """
    wanted = [names.method_order(groups[0].method)[0] for groups in setups.values()]
    found = dict.fromkeys(range(len(wanted)), 0)
    taken: set[int] = set()
    for index in sorted(found, key=lambda index: wanted[index]):
        candidates = chain([wanted[index] % PALETTE], count())
        found[index] = next(slot for slot in candidates if slot not in taken)
        taken.add(found[index])
    return list(found.values())

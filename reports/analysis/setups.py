"""Settings: the groups of one setup on several sequences, their titles, order and colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count

from cwbench.reports.analysis import names
from cwbench.reports.analysis.study import Group
from cwbench.store.marks import mark

PALETTE = 8  # colours, of figures and of the page


@dataclass(frozen=True, eq=False)
class Setting:
    """A method with its options, and its groups: one per sequence."""

    slot: int  # index in the palette
    title: str
    setup: str
    groups: list[Group]


def all_settings(groups: Sequence[Group]) -> list[Setting]:
    """In the order of the study. Equal titles are followed by the start of their fingerprint."""
    setups: dict[str, list[Group]] = {}
    for group in sorted(groups, key=lambda g: (names.method_order(g.method), g.label != g.method)):
        setups.setdefault(group.setup, []).append(group)
    plain = [rows[0].title for rows in setups.values()]
    marked = [
        title if plain.count(title) == 1 else f"{title} ({mark(setup)})"
        for title, setup in zip(plain, setups, strict=True)
    ]
    slots = _slots([rows[0].method for rows in setups.values()])
    return [Setting(*one) for one in zip(slots, marked, setups, setups.values(), strict=True)]


def main_settings(groups: Sequence[Group]) -> list[Setting]:
    """Of each version of a method the default options; all settings if those were not run.

    Settings that `cwbench tune` chose stay: the default is often one of those it tries, on other
    sequences than those that the choice is tested on.
    """
    defaults = {(g.method, g.version) for g in groups if g.label == g.method}
    firsts = [setting.groups[0] for setting in all_settings(groups)]
    others = {
        g.setup
        for g in firsts
        if g.label != g.method and (g.method, g.version) in defaults and not g.tuned_on
    }
    return all_settings([group for group in groups if group.setup not in others])


def titles(settings: Sequence[Setting]) -> tuple[str, ...]:
    return tuple(setting.title for setting in settings)


def _slots(methods: Sequence[str]) -> list[int]:
    """Indices in the palette, no two alike: the first PALETTE differ in colour.

    The first methods of the registry keep theirs in every figure; others take what is free.
    """
    wanted = [names.method_order(method)[0] for method in methods]
    found = dict.fromkeys(range(len(wanted)), 0)
    taken: set[int] = set()
    for index in sorted(found, key=lambda index: wanted[index]):
        candidates = chain([wanted[index] % PALETTE], count())
        found[index] = next(slot for slot in candidates if slot not in taken)
        taken.add(found[index])
    return list(found.values())

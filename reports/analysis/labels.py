"""Where names of points go, so that none overlap."""

from collections.abc import Sequence

Place = tuple[float, float, float]  # left and right end of a name, and the height of its point


def spread(places: Sequence[Place], gap: float) -> list[float]:
    """A height for each name: that of its point, or the next one above that is free."""
    found: dict[int, float] = {}
    for index in sorted(range(len(places)), key=lambda index: places[index][2]):
        left, right, height = places[index]
        for other in sorted(found, key=lambda other: found[other]):
            apart = places[other][1] <= left or right <= places[other][0]
            if not apart and abs(height - found[other]) < gap:
                height = found[other] + gap
        found[index] = height
    return [found[index] for index in range(len(places))]

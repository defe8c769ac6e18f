"""A picture of the last chunks of some groups: who learns, who collects, who waits."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from cwbench.bench.timeline import Span

ROWS = {"learn": "trainer learns", "collect": "workers collect", "wait": "trainer waits"}


def draw(spans: Sequence[Span], file: Path, chunks: int = 8) -> None:
    """One colour per group. Workers are drawn over each other: the darker, the more of them."""
    first = sorted(span.start for span in spans if span.row == "learn")[-chunks:][0]
    figure = Figure(figsize=(9, 2.2), layout="constrained")
    axes = figure.subplots()
    for height, row in enumerate(ROWS):
        for span in (s for s in spans if s.row == row and s.start >= first):
            bar = [((span.start - first) * 1e3, (span.end - span.start) * 1e3)]
            shade = 0.15 if row == "collect" else 0.9
            axes.broken_barh(bar, (height, 0.8), color=f"C{span.group}", alpha=shade, lw=0)
    axes.set_yticks([height + 0.4 for height in range(len(ROWS))], list(ROWS.values()))
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds")
    figure.savefig(file)

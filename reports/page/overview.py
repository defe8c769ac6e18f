"""The charts that compare methods: summary, transfer, aggregates, ranks, profiles, trade-offs."""

from collections.abc import Sequence
from html import escape

import numpy as np

from cwbench.reports.analysis import aggregates, comparison, names
from cwbench.reports.analysis.bands import Curve
from cwbench.reports.analysis.scores import Scores, seed_matrix
from cwbench.reports.page.charts import legend
from cwbench.reports.page.matrices import differences
from cwbench.reports.page.plots import (
    Axes,
    Line,
    Range,
    Row,
    extent,
    line_plot,
    row_plot,
    span,
)
from cwbench.reports.page.scatter import Scatter, scatter_plot
from cwbench.reports.tables import orders, standings, tuning
from cwbench.reports.tables.standings import Standing

POINTS = 101  # of a profile


def summary_charts(scores: Scores) -> str:
    """Average performance with intervals, every run a dot: who is best, and how sure that is."""
    said = [standings.verdict(scores, family) for family in scores.families]
    lead = "".join(f'<p class="verdict">{escape(text)}</p>' for text in said if text)
    charts = "".join(
        _rows(
            standings.standings(scores, family, "average_performance"),
            f"Average performance on {scores.title(family)}",
            (0.0, 1.0),
        )
        for family in scores.families
    )
    return f'{lead}<div class="forests">{charts}</div>' if charts else ""


def comparison_section(scores: Scores) -> str:
    families = "".join(_family(scores, family) for family in scores.families)
    return families + _orders(scores) + _tuning(scores)


def _family(scores: Scores, family: str) -> str:
    rows = [_transfer(scores, family), *_aggregates(scores, family), _ranks(scores, family)]
    plots = [_after_switch(scores, family), _profile(scores, family), *_tradeoffs(scores, family)]
    if not any([*rows, *plots]):  # nothing has ended
        return ""
    return (
        f'<h3>{escape(scores.title(family))}</h3><div class="forests">{"".join(rows)}</div>'
        f"{_others(scores, family)}{differences(scores, family)}"
        f'<div class="curves">{legend(scores.settings(family))}<div class="charts">'
        f"{''.join(plots)}</div></div>"
    )


def _rows(found: Sequence[Standing], title: str, bounds: Range | None = None) -> str:
    known = [row for row in found if not np.isnan(row.estimate.value)]
    if not known:
        return ""
    ends = [np.array([r.estimate.value, r.estimate.low, r.estimate.high]) for r in known]
    rows = [
        Row(
            row.setting.slot,
            row.setting.title,
            row.estimate.value,
            row.estimate.low,
            row.estimate.high,
            tuple(row.runs),
            f"#s-{row.setting.setup}" if row.setting.setup else "",
        )
        for row in found
    ]
    return row_plot(rows, bounds or span(ends), title=title)


def _transfer(scores: Scores, family: str) -> str:
    found = standings.standings(scores, family, "forward_transfer")
    return _rows(found, "Forward transfer")


def _others(scores: Scores, family: str) -> str:
    """Other metrics, folded."""
    charts = [
        _rows(rows, names.METRICS[metric].title)
        for metric, rows in standings.other_standings(scores, family).items()
    ]
    return (
        f"<details><summary>Other metrics</summary>"
        f'<div class="forests">{"".join(charts)}</div></details>'
        if charts
        else ""
    )


def _aggregates(scores: Scores, family: str) -> list[str]:
    return [
        _rows(standings.aggregate_standings(scores, family, name), title, (0.0, 1.0))
        for name, title in aggregates.AGGREGATES.items()
    ]


def _ranks(scores: Scores, family: str) -> str:
    found, joined = standings.rank_standings(scores, family)
    if not found:
        return ""
    chart = _rows(found, "Mean rank (1 is best)", (1.0, float(len(found))))
    note = _distinguished(joined) if found[0].seeds > 1 else "One seed cannot tell ranks apart."
    return f'<div>{chart}<p class="note">{escape(note)}</p></div>'


def _distinguished(joined: Sequence[tuple[str, ...]]) -> str:
    groups = "; ".join(", ".join(group) for group in joined)
    note = f"Ranks that cannot be distinguished: {groups}." if groups else "All ranks differ."
    return f"{note} Sign-flip test over seeds, adjusted for the number of pairs."


def _orders(scores: Scores) -> str:
    """Means over orders and seeds; every order is a dot."""
    charts = [
        _rows(rows, f"Average performance on {family}, orders as dots", (0.0, 1.0))
        for family, rows in orders.standings(scores).items()
    ]
    return f'<h3>Orders of tasks</h3><div class="forests">{"".join(charts)}</div>' if charts else ""


def _tuning(scores: Scores) -> str:
    """What each choice of options was made from."""
    charts = [
        f"<div>{_rows(tuning.standings(record), f'Anytime performance of {tuning.title(record)}')}"
        f'<p class="note">{escape(tuning.cost(record))}</p></div>'
        for record in tuning.records(scores)
    ]
    return f'<h3>Tuned options</h3><div class="forests">{"".join(charts)}</div>' if charts else ""


def _after_switch(scores: Scores, family: str) -> str:
    """What a switch of tasks does to the old ones."""
    x = scores.protocol.evaluation_steps
    lines = [
        Line(setting.slot, setting.title, x, curve)
        for setting in scores.settings(family)
        if not np.isnan((curve := standings.after_switch(scores, setting)).mean).all()
    ]
    if not lines:
        return ""
    label = "Old tasks after a switch: change of success"
    axes = Axes(label, (0.0, float(x[-1])), span(extent(lines)))
    return (
        f'<figure class="chart"><figcaption><b>{label}</b></figcaption>'
        f"{line_plot(lines, axes, POINTS)}"
        '<p class="axis">steps after the switch (across), change of success (up)</p></figure>'
    )


def _profile(scores: Scores, family: str) -> str:
    """Share of runs whose average performance exceeds a threshold."""
    thresholds = np.linspace(0, 1, POINTS)
    lines = []
    for setting in scores.settings(family):
        values, _ = seed_matrix(scores, setting.groups, "average_performance")
        if not np.isnan(values).all():
            share = comparison.profile(values, thresholds)
            low, high = comparison.profile_band(values, thresholds, scores.level)
            curve = Curve(share, low, high, np.empty((0, POINTS)))
            lines.append(Line(setting.slot, setting.title, thresholds, curve))
    if not lines:
        return ""
    label = "Performance profile: share of runs above a threshold"
    axes = Axes(label, (0.0, 1.0), unit="average performance", course=False)
    plot = line_plot(lines, axes, POINTS)
    return (
        f'<figure class="chart"><figcaption><b>{label}</b></figcaption>{plot}'
        '<p class="axis">average performance (across), share of runs above (up)</p></figure>'
    )


def _tradeoffs(scores: Scores, family: str) -> list[str]:
    transfer = Scatter(
        "Performance and forward transfer",
        "forward transfer",
        standings.against_transfer(scores, family),
    )
    memory = Scatter(
        "Performance and memory",
        "replay memory, method and parameters",
        standings.against_memory(scores, family),
        log=True,
    )
    return [scatter_plot(plot) for plot in (transfer, memory) if plot.points]

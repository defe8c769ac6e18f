"""Every table of a protocol, by name, with caption and footer."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from cwbench.reports.analysis import comparison, names, stability
from cwbench.reports.analysis.intervals import INTERVALS
from cwbench.reports.analysis.problems import missing_evaluations
from cwbench.reports.analysis.provenance import versions_of
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import SUCCESS_TITLES, Group, Protocol
from cwbench.reports.analysis.transfer import TRANSFER
from cwbench.reports.tables import (
    comparisons,
    details,
    orders,
    other_papers,
    paper_comparison,
    paper_numbers,
    paper_studies,
    plasticity,
    standings,
    tuning,
)
from cwbench.reports.tables.formats import csv_text
from cwbench.reports.tables.headline import long_sequences, stacked
from cwbench.reports.tables.model import DASH, Block, Cell, Entry, Table
from cwbench.reports.tables.resources import resources
from cwbench.spec.commit import commit_and_changes
from cwbench.spec.segment import digest
from cwbench.spec.text import counted

MORE = (
    "backward_transfer",
    "pooled_transfer",
    "later_transfer",
    "area_gain",
    "negative_transfer",
)
# Options that a footer says, as the protocol has them or not.
SAID = {"steps_per_task", "eval_every", "eval_episodes", "obs", "reward", "horizon", "success"}
BOLD = "Bold: may be the best, intervals considered."


def _brackets(scores: Scores) -> str:
    damaged = any(missing_evaluations(scores.study))
    return (
        f"In brackets: {100 * scores.level:g} % intervals over seeds. {DASH}; "
        f"a fraction counts the seeds that have ended{' with all evaluations' * damaged}."
    )


def entries(scores: Scores) -> Iterator[Entry]:
    """The tables that a protocol's runs can fill, most important first."""
    present = [f for f in names.FAMILIES if scores.groups(f)]
    yield from _headline(scores, present)
    for family in names.SEQUENCES:
        if family in present:
            yield from _details(scores, family)
    yield from _orders(scores)
    yield from _tuning(scores)
    if "single" in present:
        caption = "Single-task runs; those of fine-tuning are the reference of forward transfer."
        blocks = partial(details.single_tasks, scores)
        yield Entry("single", "details", ("single",), caption, blocks)
    for family in present:
        title, blocks = scores.title(family), partial(resources, scores, family)
        caption = f"Resources on {title}: totals over all segments, shared beginnings counted once."
        caption += " Runs that train together each count the time of all as their wall time."
        yield Entry(f"{family}-resources", "resources", (family,), caption, blocks)


def _headline(scores: Scores, present: Sequence[str]) -> Iterator[Entry]:
    for family in ("cw3", "cw6"):
        if family in present:
            yield _stacked(scores, family)
    if long := tuple(family for family in ("cw10", "cw20") if family in present):
        what = " and ".join(scores.title(family) for family in long)
        caption = f"Results of all the methods on {what}. {_brackets(scores)}"
        caption += scores.reference_note(*long)
        yield Entry("cw10-cw20", "headline", long, caption, partial(long_sequences, scores))
    if "other" in present:
        yield _stacked(scores, "other")
    if "pairs" in present:
        caption = (
            "Pairs of tasks: means over all pairs of success on both tasks at the end and of "
            f"forgetting of the first, in brackets {100 * scores.level:g} % intervals over seeds; "
            "and in how many pairs the mean over seeds is 0, above 0 and below 0.5, or above 0.1."
        )
        yield Entry("pairs", "headline", ("pairs",), caption, partial(details.pair_summary, scores))


def _orders(scores: Scores) -> Iterator[Entry]:
    if orders.present(scores):
        caption = (
            "The order of tasks as a factor. Mean over orders and seeds, in brackets "
            f"{100 * scores.level:g} % intervals for other orders of the same tasks and other "
            "seeds. Share of the order: part of the variance between runs that is between orders. "
            "Only seeds that have ended in every order."
        )
        brackets = f"{100 * scores.level:g} % t (mean) and F (share), orders as a random effect"
        blocks = partial(orders.orders, scores)
        yield Entry("orders", "details", ("other",), caption, blocks, brackets)


def _tuning(scores: Scores) -> Iterator[Entry]:
    if tuning.records(scores):
        caption = (
            "Settings tried by cwbench tune, the chosen one first: mean anytime performance "
            "over the sequences named, in brackets 90 % t intervals over runs. On these "
            "sequences the chosen setting is not tested."
        )
        families, blocks = tuple(names.FAMILIES), partial(tuning.tuning, scores)
        yield Entry("tuning", "details", families, caption, blocks, "90 % Student t over runs")


SOURCES = ("paper", *other_papers.PAPERS)  # of published numbers


def as_published(scores: Scores, source: str) -> Scores:
    """The same with success counted as the source counts it, where that is possible."""
    paper = other_papers.PAPERS.get(source)
    success = paper.success if paper else paper_comparison.SUCCESS
    return Scores(scores.study.as_published(scores.protocol, success), scores.protocol)


def published_entries(scores: Scores, source: str) -> Iterator[Entry]:
    """A source's published cells next to ours; without a number of ours only if asked for."""
    if source == "paper":
        found = chain(paper_comparison.comparisons(scores), paper_studies.comparisons(scores))
    else:
        found = chain(other_papers.comparisons(scores, source))
    for one in found:
        blocks = one.blocks if scores.study.options.all_cells else partial(_with_counterpart, one)
        intervals = source == "paper" or other_papers.PAPERS[source].intervals
        brackets = paper_comparison.bootstrap(scores, intervals=intervals)
        yield replace(one, blocks=blocks, brackets=brackets)


def _with_counterpart(one: Entry) -> tuple[Block, ...]:
    return paper_comparison.with_counterpart(one.blocks())


def published_names() -> set[str]:
    """Of all tables with published numbers, whatever the runs."""
    tables = {"pairs", *(cell.table for cell in paper_numbers.published())}
    return {*other_papers.PAPERS, *(f"paper-{table}" for table in tables)}


def all_published(scores: Scores) -> list[Entry]:
    return [entry for source in SOURCES for entry in published_entries(scores, source)]


def find(scores: Scores, name: str) -> Entry | None:
    """The table of that name."""
    every = [*entries(scores), *all_published(scores)]
    return next((entry for entry in every if entry.name == name), None)


def _stacked(scores: Scores, family: str) -> Entry:
    title = scores.title(family)
    caption = (
        f"Average performance, forgetting and forward transfer on {title}. {_brackets(scores)}"
        f"{scores.reference_note(family)}"
    )
    return Entry(family, "headline", (family,), caption, partial(stacked, scores, family))


Details = dict[str, tuple[str, Callable[[], tuple[Block, ...]]]]  # name -> caption, blocks


def _details(scores: Scores, family: str) -> Iterator[Entry]:
    """Tables on one family of sequences, next to its headline."""
    found = _always(scores, family) | _where_measured(scores, family) | _pairwise(scores, family)
    for name, (caption, blocks) in found.items():
        yield Entry(f"{family}-{name}", "details", (family,), caption, blocks)


def _always(scores: Scores, family: str) -> Details:
    title, groups = scores.title(family), scores.groups(family)
    alone = (
        " A sequence of one task has no earlier or later ones: means that need them leave it out."
        if any(len(group.tasks) == 1 for group in groups)
        else ""
    )
    reference = scores.reference_note(family)
    return {
        "tasks": (
            f"Results per task on {title}, averaged over the positions where the task occurs."
            f"{reference}",
            partial(details.tasks, scores, family),
        ),
        "learning": (
            f"Learning per task on {title}. Steps: median over runs of the first evaluation that "
            f"reaches {details.THRESHOLD:g} and begins three whose mean does, and how many runs "
            "have one.",
            partial(details.learning, scores, family),
        ),
        "more": (
            f"Backward transfer and other measures of forward transfer on {title}. Pooled: one "
            "ratio for all tasks of a sequence, so that a task with a reference near 1 cannot "
            "dominate. Later: without the first task, where a method that starts as the reference "
            "does shows noise of seeds only, or exactly 0 where one segment serves both. Gain: "
            "plain difference of areas. Negative transfer: end value of the reference minus that "
            f"of the task's own window.{alone}{reference}",
            partial(stacked, scores, family, MORE),
        ),
        "anytime": (
            f"Anytime performance (area under the average curve) and the worst task on {title}.",
            partial(stacked, scores, family, ("anytime_performance", "worst_task")),
        ),
        "own-window": (
            f"Performance on {title} in two ways. Own window: success of the last training "
            "episodes of each task, counted as the protocol counts, before the next one starts, "
            "without the first task; the measure of CompoNet and CKA-RL, which cannot show "
            "forgetting. All tasks at the end: evaluated after the last task.",
            partial(details.own_windows, scores, family),
        ),
        "stability": (
            f"Old tasks after a switch on {title}, from trailing means of three evaluations. "
            "Minimum: lowest success after a task was learned. Depth: fall below the value before "
            f"the switch. In drops: share of evaluations more than {stability.TOLERANCE:g} below "
            "it. Recovered: drops that end before the next switch, and after how many steps "
            f"(median of all drops).{alone}",
            partial(details.stability_gap, scores, family),
        ),
        "aggregates": (
            f"Aggregates of average performance on {title} over the seeds that a method has on "
            "all sequences, and mean ranks of the methods on the seeds they share; seeds are "
            "resampled.",
            partial(standings.aggregate_table, scores, family),
        ),
    }


def _where_measured(scores: Scores, family: str) -> Details:
    """Tables of what only some runs have."""
    title, found = scores.title(family), Details()
    if plasticity.measured(scores, family):
        found["plasticity"] = (
            plasticity.CAPTION.format(title=title),
            partial(plasticity.plasticity, scores, family),
        )
    groups = scores.groups(family)
    if len({(g.method, g.setup) for g in groups}) > len({g.method for g in groups}):
        found["settings"] = (
            f"Settings of one method on {title}; a block for the sequences that the same settings "
            f"were run on.{scores.reference_note(family)}",
            partial(details.settings, scores, family),
        )
    return found


def _pairwise(scores: Scores, family: str) -> Details:
    """Every method against every other, a table per headline metric."""
    title, found = scores.title(family), Details()
    for metric in names.HEADLINE:
        pairs = comparisons.pairs(scores, family, metric)
        most = max((pair.seeds for pair in pairs), default=1)
        reference = scores.reference_note(family) if metric in TRANSFER else ""
        left_out = " Sequences without it are left out." * any(pair.why for pair in pairs)
        exact = (
            f"exact; with {counted(most, 'seed')} it cannot go below {2.0 ** (1 - most):.4g}"
            if most <= comparison.EXACT_SEEDS
            else f"exact up to {comparison.EXACT_SEEDS} seeds and has 100,000 random patterns "
            "beyond"
        )
        found[f"comparison-{metric.split('_')[-1]}"] = (
            f"{names.METRICS[metric].title} of two methods on the seeds and sequences they share "
            f"on {title}.{left_out} The sign-flip test is {exact}. Holm: adjusted for the "
            "number of pairs tested in this table. P(better): chance that a run of the method "
            "named first beats one of the other. Last column: seeds that a paired t test at level "
            f"{1 - scores.level:.2g} needs to see a difference of {comparisons.DIFFERENCE:g} with "
            f"a power of 0.8, at the spread seen.{reference}",
            partial(comparisons.comparisons, scores, family, metric),
        )
    return found


def make(scores: Scores, entry: Entry) -> Table:
    """Compute one table and sign it."""
    groups = [g for family in entry.families for g in scores.groups(family)]
    blocks = entry.blocks()
    cells = [cell for block in blocks for _, row in block.rows for cell in row]
    said = f"{entry.caption}{_without_interval(cells)}"
    if any(cell.bold for cell in cells) and BOLD not in said:
        said += f" {BOLD}"
    table = Table(
        entry.name,
        said,
        blocks,
        section=entry.section,
        level=scores.level,
        brackets=entry.brackets,
        ending=scores.study.ending(scores.protocol),
    )
    return replace(table, footer=footer(scores, table, groups))


def _without_interval(cells: Sequence[Cell]) -> str:
    """Why some numbers have no brackets, in a table where others have them."""
    scored = [cell for cell in cells if cell.score and not cell.empty]
    bare = [cell for cell in scored if not cell.has_interval(INTERVALS[0])]
    whys = {re.sub("(: )?no interval(: )?", "", cell.why) for cell in bare} - {""}
    mixed = whys and len(bare) < len(scored)
    return f" Without brackets: {', or '.join(sorted(whys))}." if mixed else ""


def footer(scores: Scores, table: Table, groups: list[Group]) -> dict[str, str]:
    """What a reader must know to compare a table with another."""
    protocol = scores.protocol
    segments = [
        scores.study.segments[key]
        for key in {key for group in groups for run in group.runs for key in run.segments}
        if key in scores.study.segments
    ]
    versions = versions_of(segments)
    schedule = protocol.schedule
    episodes = schedule.get("eval_episodes", "?")
    used = sorted({scores.usable(group, "average_performance") for group in groups})
    seeds = f"{used[0]}" if len(used) == 1 else f"{used[0]} to {used[-1]}"
    commit = versions.get("commit", versions.get("cwbench", "unknown"))
    titles = [protocol.title, *protocol.named(protocol.changed - SAID)]
    return {
        "protocol": f"Protocol {', '.join(titles)}: {schedule.get('steps_per_task', '?')} steps a "
        f"task, evaluated every {schedule.get('eval_every', '?')} with "
        f"{episodes} {'episode' if episodes == 1 else 'episodes'}",
        "environment": _environment(scores, groups, versions)
        + ", TF32" * any((record.get("device") or {}).get("tf32") for record in segments),
        "seeds": f"n = {seeds} {'seed' if seeds == '1' else 'seeds'}",
        "window": f"end values over {scores.window} of {protocol.evaluations} evaluations",
        "commit": f"trained at {commit}, reported at {commit_and_changes()}",
        "hash": f"hash {digest([protocol.key, scores.window, csv_text(table)])}",
    }


def _horizon(protocol: Protocol, tasks: Iterable[str]) -> str:
    """Steps of an episode; tasks of a gymnasium sequence may have their own."""
    defined = [protocol.definition(task) or {} for task in tasks]
    own = sorted({task["horizon"] for task in defined if task.get("horizon")})
    if len(own) > 1:
        return f"horizons {own[0]} to {own[-1]}"
    return f"horizon {own[0] if own else protocol.env.get('horizon', '?')}"


def _environment(scores: Scores, groups: Sequence[Group], versions: Mapping[str, str]) -> str:
    """Environment, simulator and how success is counted: by a test, or by the tasks' own rules."""
    env = scores.protocol.env
    horizon = _horizon(scores.protocol, [task for group in groups for task in group.tasks])
    suite = env.get("suite", "metaworld")
    packages = [f"{name} {versions[name]}" for name in (suite, "mujoco") if name in versions]
    if suite != "metaworld":
        used = packages if suite in versions else []  # the point mass has no package
        return ", ".join([f"environment {suite}", horizon, *used, "score by the tasks' own rules"])
    text = f"environment {env.get('obs', '?')}, reward {env.get('reward', '?')}, {horizon}"
    success = f"success by {SUCCESS_TITLES[scores.study.success_of(scores.protocol)]}"
    return ", ".join([text, *packages, success])

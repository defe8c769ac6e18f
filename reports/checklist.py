"""`checklist.md`: the NeurIPS checklist's items that the records of the runs can answer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cwbench.reports.analysis import names
from cwbench.reports.analysis.provenance import steps_and_seconds, versions_of
from cwbench.reports.analysis.study import Protocol, Study
from cwbench.reports.tables import tuning
from cwbench.reports.tables.formats import plain
from cwbench.reports.tables.resources import count_text
from cwbench.spec.commit import commit_and_changes
from cwbench.spec.text import counted


def checklist(study: Study) -> str:
    """Setting, error bars, compute, code and data, as Markdown."""
    parts = {
        "Experimental setting": [
            *(_setting(study, protocol) for protocol in study.protocols),
            *(f"Options of {tuning.title(one)}: {tuning.cost(one)}." for one in study.tuning),
        ],
        "Error bars": _error_bars(study),
        "Compute": _compute(study.used),
        "Code": _code(study.used),
        "Data": [
            "Every table names its protocol, seeds, commits and a hash of its numbers; "
            "`cwbench verify TABLE --results RESULTS` computes it again.",
        ],
        "Missing, or to be looked at": [*_unfinished(study), *study.problems]
        or ["Nothing: every run has ended and every file was read."],
    }
    only = f" Only {study.options.selection}." if study.options.selection else ""
    lines = ["# Checklist", "", plain(f"Filled in from the records of the runs.{only}")]
    for title, texts in parts.items():
        items = [*map(plain, texts), *(_commands(study.used) if title == "Code" else ())]
        lines += ["", f"## {title}", "", *(f"* {item}" for item in items)]
    return "\n".join([*lines, ""])


def _setting(study: Study, protocol: Protocol) -> str:
    groups = study.of(protocol)
    methods = dict.fromkeys(names.label_title(g.method, g.label) for g in groups)
    sequences = dict.fromkeys(names.sequence_title(g.sequence) for g in groups)
    settings = [f"{key} {value}" for key, value in {**protocol.env, **protocol.schedule}.items()]
    window = study.window(protocol)
    return (
        f"Protocol {protocol.title} ({', '.join(settings)}); end values are means of the last "
        f"{window} of {protocol.evaluations} evaluations. Methods: {', '.join(methods)}. "
        f"Sequences: {', '.join(sequences)}. All options of every run are on the page, under Runs."
    )


def _error_bars(study: Study) -> list[str]:
    counts = sorted({len(group.finished) for group in study.groups}) or [0]
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    broken = sum(run.state in ("failed", "diverged") for g in study.groups for run in g.runs)
    return [
        f"{100 * study.options.level:g} % bootstrap intervals over seeds, widened for few seeds "
        "(t(df)/z times the jackknife error over the standard deviation of the resamples).",
        f"Seeds per number: {seeds}. What varies between seeds: initial weights, exploration, "
        "environment resets, minibatches and evaluation episodes.",
        f"Runs that failed or diverged and are in no mean: {broken}.",
        "Comparisons of two methods: exact sign-flip test on shared seeds, Holm-adjusted.",
    ]


def _unfinished(study: Study) -> list[str]:
    """How many runs have not ended, if any; a run requested twice counts once."""
    states = {run.segments: run.state for group in study.groups for run in group.runs}
    count = sum(state not in ("done", "failed", "diverged") for state in states.values())
    return (
        [f"Runs that have not ended and are in no mean: {count} of {len(states)}."] if count else []
    )


def _compute(records: Sequence[Mapping[str, Any]]) -> list[str]:
    steps, seconds = steps_and_seconds(records)
    devices = dict.fromkeys(_device(record) for record in records)
    return [
        f"{counted(len(records), 'segment')}, {count_text(steps, 'count')} training steps, "
        f"{count_text(seconds, 'seconds')} of wall time summed over segments; segments of one "
        "fleet train together, so the machine was in use for less.",
        f"Devices: {', '.join(devices) or 'not recorded'}.",
        "Runs that are not in this results folder (trials, tuning) are not counted.",
    ]


def _device(record: Mapping[str, Any]) -> str:
    device = record.get("device") or {}
    name = str(device.get("name") or device.get("type") or "not recorded")
    return name + " (TF32)" * bool(device.get("tf32"))


def _code(records: Iterable[Mapping[str, Any]]) -> list[str]:
    versions = ", ".join(f"{name} {value}" for name, value in versions_of(records).items())
    return [
        f"Trained with {versions or 'versions not recorded'}.",
        f"Reported at {commit_and_changes()}.",
    ]


def _commands(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The first commands, as Markdown."""
    commands = list(dict.fromkeys(str(r["command"]) for r in records if r.get("command")))
    more = [f"and {len(commands) - 20} more, on the page"] if len(commands) > 20 else []
    return [*map(_code_span, commands[:20]), *more]


def _code_span(text: str) -> str:
    """In one line, between more backticks than the text has in a row."""
    text = " ".join(text.splitlines())
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}{text}{ticks}" if len(ticks) == 1 else f"{ticks} {text} {ticks}"

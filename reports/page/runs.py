"""Where each number comes from: seeds, segment folders, options, versions and commands."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.provenance import versions_of
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import Setting, all_settings
from cwbench.reports.analysis.study import Group, Run
from cwbench.reports.tables.formats import number


def runs_section(scores: Scores, results_href: str | None) -> str:
    """A fold per setting, and in it the seeds of every sequence."""
    settings = all_settings(scores.groups())
    return "".join(_setting(scores, setting, results_href) for setting in settings)


def _setting(scores: Scores, setting: Setting, results_href: str | None) -> str:
    segments = scores.study.segments
    runs = [run for group in setting.groups for run in group.runs]
    keys = dict.fromkeys(key for run in runs for key in run.segments)  # sequences share segments
    records = [segments[key] for key in keys if key in segments]
    ended = sum(run.state == "done" for run in runs)
    facts = (
        _facts(records[0], versions_of(records)) if records else "<p>Nothing is on disk yet.</p>"
    )
    tables = "".join(_seeds(scores, group, results_href) for group in setting.groups)
    return (
        f'<details class="setup" id="s-{escape(setting.setup)}"><summary>'
        f"<b>{escape(setting.title)}</b> "
        f'<span class="chip">{ended} of {len(runs)} runs ended</span></summary>'
        f"{facts}{tables}</details>"
    )


def _facts(record: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    groups = ("method_options", "sac", "network", "env", "schedule")
    facts = {
        name.replace("_", " "): ", ".join(f"{k} = {_plain(v)}" for k, v in record[name].items())
        for name in groups
        if record.get(name)
    }
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    machine = record.get("machine") or {}
    facts["machine"] = ", ".join(f"{key} {_plain(value)}" for key, value in machine.items())
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text
    )
    return f"<dl>{rows}</dl>"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _seeds(scores: Scores, group: Group, results_href: str | None) -> str:
    """The seeds behind one cell."""
    values = {
        metric: scores.per_run(group, metric)
        for metric in names.HEADLINE
        if not (group.joint and metric != "average_performance")
    }
    head = "".join(f"<th scope=col>{escape(names.METRICS[m].short)}</th>" for m in values)
    rows = []
    for index, run in enumerate(group.runs):
        cells = "".join(
            "<td>–</td>" if np.isnan(column[index]) else f"<td>{number(column[index])}</td>"
            for column in values.values()
        )
        rows.append(
            f"<tr><th scope=row>{run.seed}</th>"
            f'<td><span class="chip {escape(run.state)}">{escape(run.state)}</span></td>'
            f"<td>{100 * run.progress:.0f} %</td>{cells}{_origin(scores, run, results_href)}</tr>"
        )
    title = f"{names.sequence_title(group.sequence)}: {' → '.join(group.tasks)}"
    return (
        f'<div id="g-{escape(group.key)}"><h3 class="part">{escape(title)}</h3><div class="scroll">'
        f'<table class=sortable aria-label="{escape(title)}">'
        f"<thead><tr><th scope=col>Seed</th><th scope=col>State</th><th scope=col>Done</th>"
        f"{head}<th scope=col>Segments and command</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def _origin(scores: Scores, run: Run, results_href: str | None) -> str:
    """A run's segment folders, linked where it is known how, and the command that made them."""
    folders = [_folder(name, results_href) for name in run.folders if name]
    commands = {
        str(scores.study.segments[key].get("command") or "")
        for key in run.segments
        if key in scores.study.segments
    }
    lines = "<br>".join([*folders, *(f"<code>{escape(c)}</code>" for c in sorted(commands) if c)])
    count = f"{len(folders)} of {len(run.segments)} segments"
    return f'<td class="left"><details><summary>{count}</summary>{lines}</details></td>'


def _folder(name: str, results_href: str | None) -> str:
    if results_href is None:
        return f'<span class="path">{escape(name)}</span>'
    return f'<a class="path" href="{quote(f"{results_href}/segments/{name}")}/">{escape(name)}</a>'

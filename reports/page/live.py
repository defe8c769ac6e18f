"""What is being trained now: a row per fleet, or per group of a large one."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.study import Study
from cwbench.reports.tables.formats import number
from cwbench.spec.text import at_task_end, counted, duration
from cwbench.store.claims import owner
from cwbench.store.results import SegmentFolder
from cwbench.store.status import steps_per_second

COLUMNS = ("Fleet", "Method", "Runs", "Task", "Step", "Steps/s", "Left", "Success", "Written")
Record = Mapping[str, Any]


def live_section(study: Study, results: Path) -> str:
    """Fleets that train, and segments whose process has ended; empty if nothing is going on."""
    running = [r for r in study.segments.values() if r["status"].get("state") == "running"]
    fleets: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    stopped = []
    for record in running:
        found = owner(SegmentFolder(results / "segments" / record["folder"]))
        if found:
            fleets[found, record["status"].get("started")].append(record)
        else:
            stopped.append(record)
    success = _last_success(study) if fleets else {}
    rows = "".join(_row(name, records, success) for (name, _), records in fleets.items())
    body = f"{_head()}<tbody>{rows}</tbody>"
    table = f'<div class="scroll"><table aria-label="Fleets in training">{body}</table></div>'
    return (table if rows else "") + _stopped(stopped)


def _head() -> str:
    titles = "".join(f"<th scope=col>{title}</th>" for title in COLUMNS)
    return f"<thead><tr>{titles}</tr></thead>"


def _stopped(records: Sequence[Record]) -> str:
    if not records:
        return ""
    names = ", ".join(str(record["folder"]) for record in records[:3])
    more = f" and {len(records) - 3} more" if len(records) > 3 else ""
    return (
        f'<p class="problems">{counted(len(records), "segment")} began, but the processes '
        f"that trained them have ended ({escape(names)}{more}): the same command continues.</p>"
    )


def _row(name: str, records: Sequence[Record], success: Mapping[str, float]) -> str:
    states = [record["status"] for record in records]
    step, steps = (min(int(state.get(key, 0)) for state in states) for key in ("step", "steps"))
    retraining = next((state["retraining"] for state in states if state.get("retraining")), None)
    speeds = [steps_per_second(state) or 0.0 for state in states]
    pace = min(speeds)
    known = [success[record["id"]] for record in records if record["id"] in success]
    latest = max(float(state.get("updated", 0)) for state in states)
    cells = (
        ", ".join(sorted({str(record["method"]) for record in records})),
        str(len(records)),
        ", ".join(sorted({record["tasks"][-1] for record in records})),
        at_task_end(retraining) if retraining else f"{step:,} of {steps:,}",
        f"{sum(speeds):,.0f}" if pace else "–",
        duration((steps - step) / pace) if pace else "–",
        number(float(np.mean(known))) if known else "–",
        time.strftime("%H:%M:%S", time.localtime(latest)),
    )
    body = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f"<tr><th scope=row>{escape(name)}</th>{body}</tr>"


def _last_success(study: Study) -> dict[str, float]:
    """Segment -> success on its own task in the last evaluation so far."""
    found = {}
    for group in study.groups:
        if group.joint:
            continue
        own = metrics.own_window(group.success)  # [R, N, E]
        for run, curves in zip(group.runs, own, strict=True):
            for segment, curve in zip(run.segments, curves, strict=True):
                known = curve[~np.isnan(curve)]
                if len(known):
                    found[segment] = float(known[-1])
    return found

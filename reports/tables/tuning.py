"""What `cwbench tune` tried: every setting with its score, and how much each option matters."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cwbench.reports.analysis import names
from cwbench.reports.analysis.intervals import known_interval
from cwbench.reports.analysis.scores import Score, Scores
from cwbench.reports.analysis.setups import Setting
from cwbench.reports.analysis.tuned import possible_areas, sensitivity
from cwbench.reports.tables.formats import number
from cwbench.reports.tables.model import Block, Cell
from cwbench.reports.tables.standings import Standing

Record = Mapping[str, Any]


def records(scores: Scores) -> list[Record]:
    """The choices made under this protocol."""
    return [one for one in scores.study.tuning if one.get("protocol") == scores.protocol.name]


def title(record: Record) -> str:
    return f"{names.method_title(record['method'])} on {', '.join(record['on'])}"


def cost(record: Record) -> str:
    """How the choice was made, and what it took."""
    runs, steps = record.get("runs", "?"), record.get("steps", 0)
    return f"chosen by {record.get('rule', '?')}; {runs} runs, {steps:,} environment steps"


def setting_title(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in options.items())


def standings(record: Record) -> list[Standing]:
    """Settings by score, the chosen one first."""
    return [
        Standing(
            Setting(slot, setting_title(one["options"]), "", []),
            known_interval(one["score"], *possible_areas(one["low"], one["high"])),
            np.empty(0),
        )
        for slot, one in enumerate(record["settings"])
    ]


def effects(record: Record) -> dict[str, dict[str, float]]:
    """Option -> value -> mean score of the settings that have it."""
    texts = [{k: str(v) for k, v in one["options"].items()} for one in record["settings"]]
    scores = [one["score"] for one in record["settings"]]
    return sensitivity(list(zip(texts, scores, strict=True)))


def tuning(scores: Scores) -> tuple[Block, ...]:
    """A block per choice; below the settings the mean of each value of an option."""
    return tuple(_block(record) for record in records(scores))


def _block(record: Record) -> Block:
    rows = [
        (row.setting.title, (Cell(Score(row.estimate, one["runs"])), Cell(text=str(one["runs"]))))
        for row, one in zip(standings(record), record["settings"], strict=True)
    ]
    if len(found := effects(record)) > 1:
        rows += [
            (f"all with {name} = {value}", (Cell(text=number(score)), Cell()))
            for name, values in found.items()
            for value, score in values.items()
        ]
    return Block(
        f"{title(record)}: {cost(record)}", "Setting", ("Anytime performance", "Runs"), tuple(rows)
    )

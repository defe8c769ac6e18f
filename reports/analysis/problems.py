"""What is wrong with a results folder, by name. Nothing is repaired or silently left out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from cwbench.reports.analysis.provenance import counters
from cwbench.reports.analysis.reference import find as find_reference
from cwbench.reports.analysis.study import Group, Study
from cwbench.spec.failure import brief
from cwbench.spec.text import counted
from cwbench.store.runs import Runs, records_of

LOSSES = ("actor_loss", "critic_loss", "q")
RUNAWAY = 0.99e6  # a scale of values that is at its limit in `methods/_popart.py`


def find(study: Study, loaded: Runs) -> list[str]:
    """What is not as training should have left it, and reading alone does not show."""
    return [
        *broken_runs(study, "failed"),
        *missing_evaluations(study),
        *not_numbers(loaded),
        *wrong_tasks(loaded),
    ]


def notes(study: Study, loaded: Runs) -> list[str]:
    """What a reader must know about runs that are as training left them."""
    return [
        *broken_runs(study, "diverged"),
        *missing_seeds(study),
        *uneven_references(study),
        *unstable_simulations(study),
        *runaway_values(study, loaded),
        *orphans(study),
    ]


def broken_runs(study: Study, state: str) -> Iterator[str]:
    """Runs that failed or diverged. Leaving them out makes a method look better than it is."""
    for group in study.groups:
        for run in group.runs:
            if run.state == state:
                states = [study.segments.get(key, {}).get("status", {}) for key in run.segments]
                message = next((brief(s) for s in states if s.get("message")), "")
                why = f" ({message})" if message else ""
                yield f"{name(group)}, seed {run.seed}: {run.state}{why}; it is in no mean"


def missing_evaluations(study: Study) -> Iterator[str]:
    """Ended runs whose evaluations are not all there: their numbers stay empty."""
    for group in study.groups:
        tasks = len(group.tasks)
        due = np.tril(np.ones((tasks, tasks), bool))[:, None, :]
        for index, run in enumerate(group.runs):
            if run.state == "done":
                gaps = int((np.isnan(group.success[index]) & due).sum())
                if gaps:
                    missing = counted(gaps, "evaluation is", "evaluations are")
                    yield (
                        f"{name(group)}, seed {run.seed}: has ended, but {missing} missing; what "
                        "needs them is empty"
                    )


def missing_seeds(study: Study) -> Iterator[str]:
    """Seeds that other settings have on the same sequence under the same protocol."""
    together: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in study.groups:
        together[group.protocol.key, group.sequence].append(group)
    found: dict[tuple[str, str, tuple[int, ...]], list[str]] = defaultdict(list)  # sequences
    for groups in together.values():
        every = {seed for group in groups for seed in group.seeds}
        for group in groups:
            if lacking := tuple(sorted(every - set(group.seeds))):
                found[group.protocol.key, group.title, lacking].append(group.sequence)
    for (_, title, lacking), sequences in found.items():
        seeds = ", ".join(map(str, lacking))
        one = len(lacking) == 1
        missing = f"seed {seeds} is" if one else f"seeds {seeds} are"
        has = "it" if one else "them"
        yield f"{title}: {missing} missing on {_first(sequences, 8)}; others have {has} there"


def not_numbers(loaded: Runs) -> Iterator[str]:
    """NaN where training should have left a number; it leaves none of what has diverged."""
    folders = _folders(loaded)
    segments = records_of(loaded.segments)
    diverged = [one["id"] for one in segments if one["status"].get("state") == "diverged"]
    for table, columns in ((loaded.evals, ("mean_return",)), (loaded.train, LOSSES)):
        for column in columns:
            rows = table[~np.isfinite(table[column].to_numpy(float))] if len(table) else table
            rows = rows[~rows["segment"].isin(diverged)] if len(rows) else rows
            if column in LOSSES and len(rows):
                rows = rows[_updates_made(table)[rows.index] > 0]
            for segment, count in (
                rows.drop_duplicates(["segment", "segment_step"])["segment"]
                .value_counts(sort=False)
                .items()
            ):
                file = "train.csv" if column in LOSSES else "evals.csv"
                where = f"{folders[str(segment)]}/{file}"
                yield f"{where}: {column} is not a number in {counted(int(count), 'row')}"


def _updates_made(train: pd.DataFrame) -> pd.Series:
    """Updates since the row before: evaluations may be more frequent than updates."""
    total = train["updates"]
    return total - total.groupby([train["run"], train["segment"]]).shift(fill_value=0)


def wrong_tasks(loaded: Runs) -> Iterator[str]:
    """Rows that say another task than the run has at that position."""
    if not len(loaded.evals):
        return
    tasks = {
        (run, position): task
        for run, tasks in zip(loaded.runs["run"], loaded.runs["tasks"], strict=True)
        for position, task in enumerate(tasks)
    }
    found = loaded.evals[["run", "eval_position", "eval_task"]].drop_duplicates()
    for run, index, task in found.itertuples(index=False):
        wanted = tasks.get((run, index))
        if wanted != task:
            yield f"{run}: evaluations at position {index} are of {task!r}, not of {wanted!r}"


def uneven_references(study: Study) -> Iterator[str]:
    """References of several origins, or with fewer seeds for one task of a sequence."""
    found: dict[str, None] = {}
    for group in {group.setup: group for group in study.groups}.values():
        reference = find_reference(study, group.protocol, group)
        known = [g for g in study.of(group.protocol) if g.setup == group.setup]
        tasks = sorted({task for g in known if g.family != "single" for task in g.tasks})
        chosen = {task: reference.curves[task] for task in tasks if task in reference.curves}
        if len({len(curves) for curves in chosen.values()}) > 1:
            text = ", ".join(f"{task} {len(curves)}" for task, curves in chosen.items())
            used = "transfer on a sequence uses as many as its task with the fewest has"
            found[f"reference runs differ in number ({text}); {used}"] = None
        if len({curves.origin for curves in chosen.values()}) > 1:
            text = ", ".join(f"{task} from {curves.source}" for task, curves in chosen.items())
            found[f"forward transfer mixes references of several origins ({text})"] = None
    yield from found


def unstable_simulations(study: Study) -> Iterator[str]:
    """Simulations unstable in training. Their rewards can be wrong by a factor of a million."""
    found = {
        str(record["folder"]): int(count)
        for record in study.used
        if (count := counters(record["status"]).get("unstable_episodes"))
        and (record.get("env") or {}).get("unstable") != "hold"
    }
    if found:
        episodes = counted(sum(found.values()), "training episode")
        yield (
            f"the simulation became unstable in {episodes} of {_first(sorted(found), 8)}; "
            "`--unstable hold` keeps what follows out of training"
        )


def runaway_values(study: Study, loaded: Runs) -> Iterator[str]:
    """Segments that normalise values by the largest scale allowed, where rewards hardly count."""
    if not len(loaded.train):
        return
    used = loaded.train[loaded.train["segment"].isin([record["id"] for record in study.used])]
    lost = used[used["value_std"] > RUNAWAY]["segment"].unique()
    if len(lost):
        folders = _folders(loaded)
        yield (
            f"values ran away in {counted(len(lost), 'segment')}: their scale (`value_std`) "
            f"reached its limit in {_first([folders[str(key)] for key in lost], 8)}"
        )


def orphans(study: Study) -> Iterator[str]:
    """Segments on disk that no experiment asked for."""
    used = {key for group in study.everything for run in group.runs for key in run.segments}
    lost = [record["folder"] for key, record in study.segments.items() if key not in used]
    if lost:
        yield f"{counted(len(lost), 'segment')} of no experiment, not used: {_first(lost)}"


def name(group: Group) -> str:
    return f"{group.sequence}, {group.title}"


def _first(names: Iterable[str], most: int = 3) -> str:
    """Some of them; dots stand for the others."""
    shown = list(names)
    return ", ".join([*shown[:most], *["..."] * (len(shown) > most)])


def _folders(loaded: Runs) -> dict[str, str]:
    if not len(loaded.segments):
        return {}
    return dict(zip(loaded.segments["id"], loaded.segments["folder"], strict=True))

"""Results in other programs' formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cwbench import envs
from cwbench.experiment.policy import Policy, card_of, load_policy
from cwbench.experiment.runs import Run, Runs, read_runs
from cwbench.experiment.trust import check_trust, named_code
from cwbench.spec.config import EnvConfig
from cwbench.spec.environment import environment
from cwbench.spec.errors import UserError
from cwbench.spec.extras import extra
from cwbench.spec.text import file_name
from cwbench.spec.transition import Dims
from cwbench.store.files import Unusable, check, check_output, checked_name, read_array, read_json
from cwbench.store.results import SegmentFolder

if TYPE_CHECKING:
    from minari.data_collector import EpisodeBuffer


def parquet(runs: Runs, out: Path) -> Iterator[Path]:
    """Tables of runs, evaluations and training."""
    extra("pyarrow", "cwbench[share]")
    for name in ("summary", "evaluations", "training"):
        table: pd.DataFrame = getattr(runs, name)
        file = out / f"{name}.parquet"
        table.to_parquet(file, index=False)
        yield file


def rliable(runs: Runs, out: Path) -> Iterator[Path]:
    """End values of success as rliable wants them: a file per sequence, method -> [runs, tasks]."""
    files: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for run in runs:
        if run.state == "done" and _evaluated_at_end(runs, run):
            sequence, label = runs.shown_names[run.run]
            rows = files.setdefault((sequence, run.protocol), {}).setdefault(label, [])
            rows.append(runs.end_values[run.run])
    for (sequence, protocol), settings in files.items():
        file = out / checked_name(f"rliable-{sequence}-{protocol}.npz", "sequence")
        scores: dict[str, Any] = {label: np.stack(rows) for label, rows in settings.items()}
        np.savez(file, **scores)
        yield file


def _evaluated_at_end(runs: Runs, run: Run) -> bool:
    """Whether a run's last evaluations can be read; if not, that is listed as a problem."""
    if not np.isnan(runs.end_values[run.run]).any():
        return True
    runs.problems.append(f"{run.run} lacks evaluations at its end and is left out")
    return False


def weights(runs: Runs, out: Path) -> Iterator[Path]:
    """Policies as safetensors, one per run and task, each with a card that `load_policy` reads.

    Runs whose code or weights are not there are listed as problems; if all are, that is raised.
    """
    written, lacking = False, dict[str, list[str]]()  # what is wrong -> runs
    for run in (run for run in runs if run.learned):
        positions = range(len(run.tasks) if run.joint else run.learned)
        try:
            policies = [load_policy(run, position) for position in positions]
            cards = [card_of(policy) for policy in policies]
        except UserError as error:
            lacking.setdefault(str(error), []).append(run.run)
            continue
        for policy, card in zip(policies, cards, strict=True):
            yield _write_policy(run, policy, card, out)
            written = True
    left_out = [f"left out {', '.join(names)}: {why}" for why, names in lacking.items()]
    if left_out and not written:
        raise UserError("; ".join(left_out))
    runs.problems += left_out


def _write_policy(run: Run, policy: Policy, card: dict[str, Any], out: Path) -> Path:
    from safetensors.numpy import save_file

    label = file_name(checked_name(run.label, "run"))
    name = f"{label}-{run.sequence}-s{run.seed}-{run.segments[-1]}"
    folder = out / checked_name(name, "run")
    folder.mkdir(parents=True, exist_ok=True)
    stem = checked_name(f"{policy.position + 1}-{policy.task}", "task")
    tensors = {name: x.copy() for name, x in policy.layout.views(policy.weights).items()}
    save_file(tensors, folder / f"{stem}.safetensors")
    card |= {"sequence": run.sequence, "protocol": run.protocol, "weights": f"{stem}.safetensors"}
    file = folder / f"{stem}.json"
    file.write_text(json.dumps(card, indent=1) + "\n")
    return file


def minari(runs: Runs, out: Path) -> Iterator[Path]:
    """Transitions that methods have kept, as Minari data sets, one per segment.

    Minari finds them with the environment variable MINARI_DATASETS_PATH set to their folder.
    Segments whose replay budget lost the order of transitions are listed as problems.
    """
    extra("minari", "cwbench[share]")
    with environment({"MINARI_DATASETS_PATH": str(out.resolve())}):
        trusted = all(run.trusted for run in runs)
        for folder in sorted({run.segment_folder(k) for run in runs for k in range(run.learned)}):
            if (folder / "replay" / "transitions.npy").exists():
                try:
                    yield out / _minari_dataset(folder, trusted)
                except Unusable as error:
                    runs.problems.append(f"{error.path}: {error.reason}")


def _minari_dataset(folder: Path, trusted: bool) -> str:
    """Write the transitions of a segment; the data set's name."""
    from gymnasium.spaces import Box
    from minari import create_dataset_from_buffers

    record = read_json(folder / "segment.json")
    check_trust(named_code("", record["env"]), trusted)
    config = EnvConfig.from_record(record["env"])
    dims = envs.dims(config)
    rows = in_order(folder, dims, config.horizon)
    name = f"cwbench/{folder.name}-v0"
    buffers = [_buffer(rows, part) for part in episodes(rows, config.horizon)]
    with catch_warnings():
        filterwarnings("ignore", module="minari")  # on author, code and other fields left out
        create_dataset_from_buffers(
            name,
            buffers,
            observation_space=Box(-np.inf, np.inf, (dims.obs,), np.float32),
            action_space=Box(-1, 1, (dims.action,), np.float32),
            algorithm_name=record["method"],
            description=f"Transitions of the last of the tasks {', '.join(record['tasks'])}",
            data_format="arrow",
        )
    return name


def in_order(folder: Path, dims: Dims, horizon: int) -> dict[str, Any]:
    """The transitions of a segment by name; Unusable if their order is lost."""
    rows = dims.unpack(transitions(folder))
    if in_random_order(rows, horizon):
        reason = "in random order, as a replay budget keeps them: they form no episodes"
        raise Unusable(folder / "replay" / "transitions.npy", reason, "")
    return rows


def transitions(folder: Path) -> NDArray[Any]:
    """Those that a segment has kept, [rows, numbers]; Unusable if they are not what was written."""
    name = "replay/transitions.npy"
    check(folder / name, SegmentFolder(folder).checksums().get(name))
    return read_array(folder / name)


def _buffer(rows: dict[str, Any], episode: slice) -> EpisodeBuffer:
    from minari.data_collector import EpisodeBuffer

    return EpisodeBuffer(
        observations=np.concatenate([rows["obs"][episode], rows["next_obs"][episode][-1:]]),
        actions=rows["action"][episode],
        rewards=list(rows["reward"][episode]),
        terminations=list(_ends(rows, episode)),
        truncations=list(_last(episode) & ~_ends(rows, episode)),
    )


def in_random_order(rows: dict[str, Any], horizon: int) -> bool:
    """Whether most rows neither end an episode nor lead to the next row. Records do not say it."""
    if horizon == 1:
        return False
    lost = _broken(rows) & ~_ends(rows, slice(0, len(rows["obs"])))[:-1]
    return bool(2 * lost.sum() > len(lost))


def _broken(rows: dict[str, Any]) -> NDArray[np.bool_]:
    """Whether the row after each is of another episode: its observation is not the next one."""
    return np.asarray((rows["next_obs"][:-1] != rows["obs"][1:]).any(1))


def episodes(rows: dict[str, Any], horizon: int) -> Iterator[slice]:
    """The rows of each episode, in the order in which they were collected."""
    ends = [*(np.flatnonzero(_broken(rows)) + 1).tolist(), len(rows["obs"])]
    start = 0
    for end in ends:
        for first in range(start, end, horizon):
            yield slice(first, min(first + horizon, end))
        start = end


def _ends(rows: dict[str, Any], part: slice) -> NDArray[np.bool_]:
    size = part.stop - part.start
    found = rows["terminated"]
    return np.zeros(size, bool) if found is None else np.asarray(found[part] > 0)


def _last(part: slice) -> NDArray[np.bool_]:
    return np.asarray(np.arange(part.start, part.stop) == part.stop - 1)


FORMATS: dict[str, Callable[[Runs, Path], Iterator[Path]]] = {
    "parquet": parquet,
    "minari": minari,
    "rliable": rliable,
    "weights": weights,
}


def export(
    results: Path,
    to: str,
    out: Path | None = None,
    *,
    methods: Mapping[str, Any] | None = None,
    trust: bool = False,
    problems: list[str] | None = None,
) -> Iterator[Path]:
    """Write results in a format; yields the files and folders as they are there.

    What could not be read, and so was left out, is added to `problems`.
    """
    folder = check_output(results, out or results / "export" / to)
    runs = read_runs(results, methods or {}, trusted=trust)
    if not any(run.learned for run in runs):
        raise UserError(f"{results} has no finished task", "train one first")
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield from FORMATS[to](runs, folder)
        if problems is not None:
            problems += runs.problems
    except UserError:
        with suppress(OSError):  # where something has been written
            for path in new:
                path.rmdir()
        raise

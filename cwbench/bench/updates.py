"""What `cwbench bench` measures of the trainer."""

import gc
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any

import torch

from cwbench import envs
from cwbench.bench import baselines
from cwbench.learner.method import Method
from cwbench.planning.rehearsal import Rehearsal
from cwbench.planning.timing import seconds_per_call
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.environment import environment
from cwbench.spec.segment import Setup
from cwbench.spec.tasks import CW_TASKS

CHUNK = 50  # updates between two looks at the clock, on CUDA
OURS, COMPILED, SB3 = "cwbench", "cwbench --compile", "stable-baselines3"

Row = dict[str, Any]
Key = tuple[str, int]  # name and number of runs
Contenders = dict[Key, baselines.Updates]


def plain_sac(batch_size: int) -> tuple[Setup, type[Method[Any]]]:
    """With the published networks."""
    groups = (
        SACConfig(batch_size=batch_size),
        NetworkConfig(),
        MetaWorldConfig(),
        ScheduleConfig(),
    )
    return Setup("finetuning", MethodConfig(), *groups), Method


def fleet_updates(
    setup: Setup,
    method_class: type[Method[Any]],
    runs: int,
    device: torch.device,
    *,
    compiled: bool,
    length: int = 1,
) -> baselines.Updates:
    """Updates of a fleet in the last of `length` tasks, on made-up transitions."""
    dims = envs.dims(setup.env)
    tasks = CW_TASKS[:length]
    fleet = [method_class.segments_of_run(setup, seed, tasks)[-1] for seed in range(runs)]
    return Rehearsal(fleet, method_class, dims, device, compiled=compiled).train


def update_speed(train: baselines.Updates, device: torch.device, seconds: float) -> float:
    """Updates per second on a device that does nothing else."""
    chunk = CHUNK if device.type == "cuda" else 1
    return chunk / seconds_per_call(partial(train, chunk), seconds)


def compare_updates(
    sizes: Sequence[int],
    threads: int,
    batch_size: int,
    *,
    compiled: bool,
    seconds: float,
    rounds: int,
) -> list[Row]:
    """`_compare_updates` in a process that has this many threads from its start.

    `torch.set_num_threads` is not enough: on ARM, oneDNN takes all cores regardless.
    """
    one_process = ProcessPoolExecutor(1, get_context("spawn"))
    with environment({"OMP_NUM_THREADS": str(threads)}), one_process as child:
        return child.submit(
            _compare_updates, sizes, threads, batch_size, compiled, seconds, rounds
        ).result()


def _compare_updates(
    sizes: Sequence[int],
    threads: int,
    batch_size: int,
    compiled: bool,
    seconds: float,
    rounds: int,
) -> list[Row]:
    torch.set_num_threads(threads)
    cpu, ours = torch.device("cpu"), plain_sac(batch_size)
    contenders: Contenders = {}
    for size in sizes:
        contenders[OURS, size] = fleet_updates(*ours, size, cpu, compiled=False)
        if compiled:
            contenders[COMPILED, size] = fleet_updates(*ours, size, cpu, compiled=True)
    if known := baselines.stable_baselines(batch_size):
        contenders[SB3, 1] = known
    taken = interleaved(contenders, seconds, rounds)
    base = (SB3, 1) if known else (OURS, sizes[0])
    return [_row(key, base, taken, threads) for key in contenders]


Methods = Mapping[str, tuple[Setup, type[Method[Any]]]]


def compare_methods(
    methods: Methods,
    sizes: Sequence[int],
    threads: int,
    device: torch.device,
    *,
    compiled: bool,
    length: int,
    seconds: float,
    rounds: int,
) -> list[Row]:
    """Updates per second of several methods; ratios are to the first one, for equal fleets."""
    torch.set_num_threads(threads)
    rows, base = [], next(iter(methods))
    for size in sizes:
        make = partial(fleet_updates, runs=size, device=device, compiled=compiled, length=length)
        if device.type == "cpu":
            trainers = {(name, size): make(*methods[name]) for name in methods}
            taken = interleaved(trainers, seconds, rounds)
        else:
            taken = {(n, size): [_alone(make, methods[n], device, seconds)] for n in methods}
        rows += [_row(key, (base, size), taken, threads) for key in taken]
    return rows


def _alone(
    make: Callable[..., baselines.Updates],
    method: tuple[Setup, type[Method[Any]]],
    device: torch.device,
    seconds: float,
) -> float:
    """Seconds per update, with nothing else on the device; NaN where it fails there."""
    try:
        return 1 / update_speed(make(*method), device, seconds)
    except RuntimeError as error:  # out of memory, for example: the other rows still count
        warnings.warn(f"{method[0].method}: {error}", stacklevel=2)
        return math.nan
    finally:
        gc.collect()  # trainer and method refer to each other


def _row(key: Key, base: Key, taken: Mapping[Key, Sequence[float]], threads: int) -> Row:
    """Updates per second; the ratio is that of run-updates per second."""
    (what, runs), (ratio_to, base_runs) = key, base
    pairs = zip(taken[key], taken[base], strict=True)
    return {
        "what": what,
        "runs": runs,
        "threads": threads,
        "updates_per_s": 1 / median(taken[key]),
        "ratio": median(runs * theirs / (base_runs * ours) for ours, theirs in pairs),
        "ratio_to": ratio_to,
    }


def interleaved(contenders: Contenders, seconds: float, rounds: int) -> dict[Key, list[float]]:
    """Seconds per update in each of several rounds, in which all take turns.

    Stable-Baselines3 runs with torch's defaults, ours as `cwbench run` sets torch up.
    """
    taken: dict[Key, list[float]] = {key: [] for key in contenders}
    for _ in range(rounds):
        for key, train in contenders.items():
            torch.backends.mkldnn.enabled = key[0] == SB3  # type: ignore[assignment]
            taken[key].append(seconds_per_call(partial(train, 1), seconds / rounds))
    return taken

"""What `cwbench bench` measures of the trainer."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any

import torch

from cwbench import peers
from cwbench.config import EnvConfig, MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.estimate import example_trainer, seconds_per_call
from cwbench.segment import Segment, Setup

CHUNK = 50  # updates between two looks at the clock, on CUDA
OURS, COMPILED, SB3, TEXTBOOK = "cwbench", "cwbench --compile", "stable-baselines3", "textbook"

Row = dict[str, Any]
Contenders = dict[tuple[str, int], peers.Updates]  # by name and number of runs


def fleet_updates(
    runs: int, device: torch.device, batch_size: int, *, compiled: bool
) -> peers.Updates:
    """Updates of a fleet of plain SAC with the published networks."""
    sac = SACConfig(batch_size=batch_size)
    groups = (MethodConfig(), sac, NetworkConfig(), EnvConfig(), ScheduleConfig())
    setup = Setup("finetuning", *groups)
    fleet = [Segment(setup, seed, ("push",)) for seed in range(runs)]
    trainer = example_trainer(fleet, 12, device, compiled=compiled)
    trainer.replay.rows.normal_()
    return trainer.train


def update_speed(
    runs: int, device: torch.device, batch_size: int, *, compiled: bool, seconds: float
) -> float:
    """Updates per second on a device of its own, nothing beside it."""
    train = fleet_updates(runs, device, batch_size, compiled=compiled)
    chunk = CHUNK if device.type == "cuda" else 1
    return chunk / seconds_per_call(partial(train, chunk), seconds)


def beside_peers(
    sizes: Sequence[int],
    threads: int,
    batch_size: int,
    *,
    compiled: bool,
    seconds: float,
    rounds: int,
) -> list[Row]:
    """`_beside_peers` in a process that has this many threads from its start.

    `torch.set_num_threads` is not enough: on ARM, oneDNN takes all cores regardless.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as child:
            return child.submit(
                _beside_peers, sizes, threads, batch_size, compiled, seconds, rounds
            ).result()
    finally:
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def _beside_peers(
    sizes: Sequence[int],
    threads: int,
    batch_size: int,
    compiled: bool,
    seconds: float,
    rounds: int,
) -> list[Row]:
    torch.set_num_threads(threads)
    cpu = torch.device("cpu")
    contenders: Contenders = {}
    for size in sizes:
        contenders[OURS, size] = fleet_updates(size, cpu, batch_size, compiled=False)
        if compiled:
            contenders[COMPILED, size] = fleet_updates(size, cpu, batch_size, compiled=True)
    contenders[TEXTBOOK, 1] = peers.Textbook(batch_size).train
    if known := peers.stable_baselines(batch_size):
        contenders[SB3, 1] = known
    taken = interleaved(contenders, seconds, rounds)
    base = (SB3 if known else TEXTBOOK), 1
    return [
        {
            "what": what,
            "runs": runs,
            "threads": threads,
            "updates_per_s": 1 / median(taken[what, runs]),
            "ratio": median(
                runs * other / own
                for own, other in zip(taken[what, runs], taken[base], strict=True)
            ),
            "ratio_to": base[0],
        }
        for what, runs in contenders
    ]


def interleaved(
    contenders: Contenders, seconds: float, rounds: int
) -> dict[tuple[str, int], list[float]]:
    """Seconds per update in each of several rounds, in which all have their turn.

    The peers run with torch as it comes, ours as `cwbench run` sets it up.
    """
    taken: dict[tuple[str, int], list[float]] = {key: [] for key in contenders}
    for _ in range(rounds):
        for key, train in contenders.items():
            ours = key[0] in (OURS, COMPILED)
            torch.backends.mkldnn.enabled = not ours  # type: ignore[assignment]
            taken[key].append(seconds_per_call(partial(train, 1), seconds / rounds))
    return taken

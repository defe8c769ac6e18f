"""What fsync and checksums cost, as a share of a run of the compact protocol.

    python scripts/fsync_cost.py --device cuda --runs 50

Trains a short task of Meta-World, times the calls, and scales them to 250,000 steps: what comes
with evaluations and snapshots by their number, transitions by steps, the rest once. With
`--steps 250000` nothing is scaled. Checksums include reading a file back after it was written.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import cwbench
from cwbench.fleet import snapshot
from cwbench.fleet.group import Group
from cwbench.spec.config import PROTOCOLS, ScheduleConfig
from cwbench.store import checkpoint, files

COMPACT = PROTOCOLS["compact"]
TIMED = ((files, "sync", "fsync"), (files, "checksum", "sums"), (checkpoint, "load", "sums"))
PHASES = ((snapshot, "_save_transitions", "steps"), (snapshot, "save", "snapshots"),
          (Group, "_evaluated", "evaluations"), (Group, "finish", "ends"))  # fmt: skip


class Stopwatch:
    """Seconds by what was done and in which phase of training; outermost calls only."""

    def __init__(self) -> None:
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.phases, self.busy, self.snapshots = ["ends"], False, 0

    def timed(self, call: Callable[..., Any], what: str) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self.busy:
                return call(*args, **kwargs)
            self.busy, start = True, time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.busy = False
                self.seconds[what, self.phases[-1]] += time.perf_counter() - start

        return wrapper

    def in_phase(self, call: Callable[..., Any], phase: str) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.phases.append(phase)
            self.snapshots += phase == "snapshots"
            try:
                return call(*args, **kwargs)
            finally:
                self.phases.pop()

        return wrapper

    def watching(self) -> ExitStack:
        stack = ExitStack()
        for wrap, places in ((self.timed, TIMED), (self.in_phase, PHASES)):
            for owner, name, what in places:
                stack.enter_context(patch.object(owner, name, wrap(getattr(owner, name), what)))
        return stack


def measure(options: argparse.Namespace, results: str) -> str:
    steps, total = options.steps, COMPACT["steps_per_task"]
    every = min(COMPACT["eval_every"], steps // 4)
    plan = cwbench.plan(
        options.method, options.sequence, seeds=range(options.runs), protocol="compact",
        results=results, device=options.device, steps_per_task=steps, eval_every=every,
        start_steps=min(ScheduleConfig().start_steps, steps // 4),
        snapshot_minutes=options.snapshot_minutes,
    )  # fmt: skip
    watch = Stopwatch()
    with watch.watching():
        train = cwbench.train(plan, quiet=True).training
    # From the first evaluation on: captured and compiled updates only.
    first, last = (train.groupby("step")["seconds"].max().iloc[row] for row in (0, -1))
    speed = (steps - every) / (last - first)
    times = {
        "steps": total / steps,
        "evaluations": total / COMPACT["eval_every"] / (steps / every),
        "snapshots": total / speed / 600 / max(watch.snapshots, 1),  # one in ten minutes
        "ends": 1.0,
    }
    fsync, sums = (
        sum(s * times[phase] for (kind, phase), s in watch.seconds.items() if kind == what)
        for what in ("fsync", "sums")
    )
    share = 100 * speed / total
    return (
        f"{options.method}, {options.runs} runs on {options.device}, {steps:,} steps: "
        f"fsync {fsync:.2f} s ({fsync * share:.3f} %), checksums {sums:.2f} s "
        f"({sums * share:.3f} %) of {total / speed:,.0f} s for {total:,} steps "
        f"({watch.snapshots} snapshots seen, {speed:,.0f} steps/s of each run)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--method", default="finetuning")
    parser.add_argument("--sequence", default="single-hammer")
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--snapshot-minutes", type=float, default=0.2)
    parser.add_argument("--folder", help="on the disk to be measured; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as results:
        print(measure(options, results))


if __name__ == "__main__":
    main()

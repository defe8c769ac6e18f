"""The table of docs/scaling.md: 100 pairs x 5 seeds x 2 methods on 1, 8 and 64 GPUs.

    python docs/scaling.py [--steps 1000000] [--factor 2.5] [--steps-per-second 37000]

What was measured stands here as parameters; put your own machine's figures in and run it again.
"""

import argparse
import itertools
from math import ceil

# Updates per second of a fleet of fine-tuning on one H200, TF32 and --compile (performance.md).
UPDATES_PER_SECOND = {1: 4457.0, 20: 1850.0, 33: 1388.0, 50: 906.0, 100: 511.0}
STEPS_PER_SECOND = 37_000.0  # environment steps with 16 cores per GPU, evaluation included (same)
LANE_STEPS_PER_SECOND = 3_200.0  # one run's environment and policy in one of 16 busy workers (same)
FACTOR = 2.5  # an update of these methods against fine-tuning's: RECALL 2.1, Perfect Memory 2.8
METHODS, SEEDS, TASKS, LARGEST = 2, 5, 10, 100
ROW = 4 * (2 * 12 + 4 + 1)  # bytes of a transition
NOTE = 4 * 2 * 4  # RECALL's recorded policy, next to it
END = 4 * (205_328 + 2 * 405_508)  # weights and targets that a child starts from


def update_seconds(runs: float) -> float:
    """On the line between measured fleet sizes."""
    known = [(size, 1 / speed) for size, speed in UPDATES_PER_SECOND.items()]
    for (a, x), (b, y) in itertools.pairwise(known):
        if runs <= b:
            return x + (y - x) * (runs - a) / (b - a)
    return known[-1][1] * runs / known[-1][0]


def fleet_seconds(runs: int, steps: int, factor: float, rate: float) -> float:
    """Groups alternate, so a fleet is as slow as the slower of updates and collecting."""
    learning = steps * factor * update_seconds(runs)
    collecting = max(runs * steps / rate, steps / LANE_STEPS_PER_SECOND)
    return max(learning, collecting)


def fleets(runs: int, gpus: int) -> list[int]:
    """Sizes of one method's fleets at a level: at most LARGEST, and as many rounds as needed."""
    rounds = ceil(METHODS * runs / (gpus * LARGEST))
    count = ceil(runs / min(LARGEST, ceil(METHODS * runs / (gpus * rounds))))
    return [runs // count + (number < runs % count) for number in range(count)]


def read_bytes(sizes: list[int], steps: int) -> int:
    """What one method's second tasks read of the first: replay once for each part, weights."""
    order = [(first, seed) for first in range(TASKS) for _ in range(TASKS) for seed in range(SEEDS)]
    total, start = 0, 0
    for size in sizes:
        groups = 3 if size >= 75 else 2 if size >= 16 else 1
        for number in range(groups):
            part = size // groups + (number < size % groups)
            total += len(set(order[start : start + part])) * steps * (ROW + NOTE // 2)
            start += part
    return total + len(order) * END


def row(gpus: int, steps: int, factor: float, rate: float) -> str:
    seconds, moved, shapes = 0.0, 0, []
    for runs in (TASKS * SEEDS, TASKS * TASKS * SEEDS):
        sizes = fleets(runs, gpus)
        rounds = ceil(METHODS * len(sizes) / gpus)
        seconds += rounds * fleet_seconds(max(sizes), steps, factor, rate)
        shapes.append(f"{METHODS * len(sizes)} x {max(sizes)}")
    moved = METHODS * read_bytes(sizes, steps)
    hours = seconds / 3600
    per_run = gpus * seconds / (METHODS * TASKS * TASKS * SEEDS)
    cells = (gpus, *shapes, f"{hours:.1f} h", f"{gpus * hours:.0f}", f"{per_run:.0f} s")
    return "| " + " | ".join(map(str, (*cells, f"{moved / 2**30:.0f} GiB"))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1_000_000, help="per task")
    parser.add_argument("--factor", type=float, default=FACTOR, help="update / fine-tuning's")
    parser.add_argument("--steps-per-second", type=float, default=STEPS_PER_SECOND)
    args = parser.parse_args()
    print("| GPUs | first tasks | second tasks | wall time | GPU-hours | GPU time per run | read |")
    print("| - | - | - | - | - | - | - |")
    for gpus in (1, 8, 64):
        print(row(gpus, args.steps, args.factor, args.steps_per_second))


if __name__ == "__main__":
    main()

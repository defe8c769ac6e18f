"""Time the report of about 1,000 generated runs: `python scripts/large_report.py [FOLDER]`.

The results stay in FOLDER (a temporary one by default) and are used again if they are there.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from sample_results import METHODS, Setting, singles, write_results  # noqa: E402

from cwbench import sequences  # noqa: E402
from cwbench.reports import build  # noqa: E402

TRIPLETS = [f"cw3-{number}" for number in range(1, 9)]
SEXTETS = [f"cw6-{number}" for number in range(1, 9)]
PAIRS = [f"pair-{first}-{second}" for first in range(5) for second in range(10)]


def write_runs(folder: Path) -> None:
    """Six methods on CW3 and CW6, two on 50 pairs, and references, five seeds each."""
    settings = [Setting(method) for method in METHODS]
    write_results(folder, sequence_names=TRIPLETS + SEXTETS, settings=settings, name="cw")
    pairs = [Setting("finetuning"), Setting("perfect_memory")]
    write_results(folder, sequence_names=PAIRS, settings=pairs, name="pairs")
    tasks = singles(sequences.CW_TASKS)
    write_results(folder, sequence_names=tasks, settings=[Setting("finetuning")], name="reference")


def processor_seconds() -> float:
    """Of this process and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def time_report(folder: Path) -> None:
    wall, processor = time.monotonic(), processor_seconds()
    study = build.read(folder / "results")
    made = build.write_report(study, folder / "results", folder / "report")
    wall, processor = time.monotonic() - wall, processor_seconds() - processor
    runs = sum(len(group.runs) for group in study.groups)
    size = made.page.stat().st_size / 1e6
    print(f"{runs} runs, {made.tables} tables, {made.figures} figures, page of {size:.1f} MB")
    print(f"{wall:.1f} s of wall time, {processor:.1f} s of processor time")


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        if not (folder / "results").exists():
            write_runs(folder / "results")
        time_report(folder)


if __name__ == "__main__":
    main()

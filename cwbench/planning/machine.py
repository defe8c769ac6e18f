"""What this machine has: cores and memory."""

import contextlib
import os
from pathlib import Path

from cwbench.spec.errors import UserError

MOST_CORES = 10_000


def cores() -> int:
    """Cores this process may use, which in a container or job may be fewer than there are.

    Launchers that start several processes on a machine name each one's share.
    """
    if share := os.environ.get("CWBENCH_CORES"):
        if not (share.isascii() and share.isdecimal() and 1 <= int(share[:9]) <= MOST_CORES):
            raise UserError(
                f"CWBENCH_CORES={share}: not a number of cores", f"give 1 to {MOST_CORES:,}"
            )
        return int(share)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def most_threads() -> int:
    """Threads that OMP_NUM_THREADS allows one process; without it as many as a machine can have."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list where they nest
    count = int(given[:9]) if given.isascii() and given.isdecimal() else 0
    return count or MOST_CORES  # OpenMP ignores what is no number, too


def available_bytes() -> int:
    """Host memory that this process can still get: of the machine, or of its control group."""
    amounts = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        amounts += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvail")]
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        amounts.append(int(limit) - int(used))
    if not amounts:
        amounts.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(0, min(amounts))


def size(count: int) -> str:
    """Bytes for people: 512 B, 3.4 MiB, 12 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"

"""What this machine has: cores and memory."""

import contextlib
import os
import re
from collections.abc import Iterator
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


def available_bytes(root: Path = Path("/")) -> int:
    """Host memory that this process can still get: of the machine, and of its control groups."""
    amounts = list(_left_in_groups(root))
    with contextlib.suppress(OSError):
        lines = (root / "proc/meminfo").read_text().splitlines()
        amounts += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvail")]
    if not amounts:
        amounts.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(0, min(amounts))


# Names of limit, use and reclaimable cache in a control group's folder: of versions 2 and 1.
GROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def _left_in_groups(root: Path) -> Iterator[int]:
    """What the control group of this process, and each one around it, may still use.

    Lines of /proc/self/cgroup are NUMBER:CONTROLLERS:PATH; version 2 names no controllers.
    """
    lines = ["0::/", "0:memory:/"]  # in a container the top may be its own group
    with contextlib.suppress(OSError):
        lines += os.fsdecode((root / "proc/self/cgroup").read_bytes()).splitlines()
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        for kind in {"", "memory"} & set(controllers.split(",")):
            top = root / "sys/fs/cgroup" / kind
            group = top / path.strip("/")
            for folder in (group, *group.parents):
                if folder.is_relative_to(top):
                    yield from _left_in_group(folder, *GROUP_FILES[kind])


def _left_in_group(folder: Path, limit: str, used: str, cache: str) -> Iterator[int]:
    """Nothing for a group without a limit. Files read long ago count as used, but are given up."""
    with contextlib.suppress(OSError, ValueError):  # version 2 writes "max" for none
        most, now = (int((folder / name).read_text()) for name in (limit, used))
        found = None
        with contextlib.suppress(OSError):
            text = (folder / "memory.stat").read_text()
            found = re.search(rf"^{cache} (\d+)$", text, re.MULTILINE)
        yield most - now + (int(found[1]) if found else 0)


def size(count: int) -> str:
    """Bytes for people: 512 B, 3.4 MiB, 12 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"

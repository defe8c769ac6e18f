"""What the environment says about this machine."""

from pathlib import Path

import pytest

from cwbench.planning.machine import MOST_CORES, available_bytes, cores, most_threads
from cwbench.spec.errors import UserError


def test_a_launcher_names_the_cores_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CORES", "3")
    assert cores() == 3


@pytest.mark.parametrize("text", ["abc", "0", "-3", "1e9", "1000000000", "2.5", "9" * 5000, "²"])
def test_what_is_no_number_of_cores_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBENCH_CORES", text)
    with pytest.raises(UserError, match=r"CWBENCH_CORES=.*: not a number of cores; give 1 to"):
        cores()


@pytest.mark.parametrize(
    ("text", "most"), [("1", 1), (" 4 ", 4), ("4,2", 4), ("", MOST_CORES), ("all", MOST_CORES)]
)
def test_threads_are_limited_as_in_other_programs(
    text: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert most_threads() == most


GIB = 2**30


def fake_tree(root: Path, files: dict[str, object]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")
    return root


def group(version: int, folder: str, limit: object, used: int, cache: int) -> dict[str, object]:
    """The files of a control group."""
    names = ("max", "current") if version == 2 else ("limit_in_bytes", "usage_in_bytes")
    top = "sys/fs/cgroup" if version == 2 else "sys/fs/cgroup/memory"
    key = "inactive_file" if version == 2 else "total_inactive_file"
    stat = f"anon 5\nactive_file 7\n{key} {cache}"
    return {
        f"{top}/{folder}/memory.{name}": value
        for name, value in zip((*names, "stat"), (limit, used, stat), strict=True)
    }


@pytest.mark.parametrize("version", [1, 2])
def test_memory_is_limited_by_every_control_group_around_a_process(
    version: int, tmp_path: Path
) -> None:
    """The job has 8 GiB left, its user 3 and 1 of cache that would be given up, the machine 64."""
    line = "4:cpu,memory:/user/job\n5:pids:/other" if version == 1 else "0::/user/job"
    none = 2**63 - 4096 if version == 1 else "max"
    files = {
        "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {64 * 2**20} kB",
        "proc/self/cgroup": line,
        **group(version, "user/job", 10 * GIB, 2 * GIB, 0),
        **group(version, "user", 20 * GIB, 17 * GIB, GIB),
        **group(version, "other", GIB, GIB, 0),
    }
    assert available_bytes(fake_tree(tmp_path, files)) == 4 * GIB
    fake_tree(tmp_path, group(version, "user", none, 17 * GIB, GIB))
    assert available_bytes(tmp_path) == 8 * GIB


def test_memory_of_a_container_whose_group_has_a_path_of_the_host(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/host/path/of/it", **group(2, "", 2 * GIB, GIB, 0)}
    assert available_bytes(fake_tree(tmp_path, files)) == GIB


def test_memory_where_control_groups_are_written_oddly(tmp_path: Path) -> None:
    files = group(2, "", 2 * GIB, GIB, 0) | {"sys/fs/cgroup/memory.stat": "\nanon\n"}
    assert available_bytes(fake_tree(tmp_path, files)) == GIB  # no list of groups
    fake_tree(tmp_path, {"proc/self/cgroup": "\nnonsense\n0::/../x"})
    assert available_bytes(tmp_path) == GIB


def test_memory_without_control_groups(tmp_path: Path) -> None:
    assert available_bytes(fake_tree(tmp_path, {"proc/meminfo": "MemAvailable: 3 kB"})) == 3072

"""A real Ray cluster of several nodes on this machine, one of which loses power."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import (
    RUN,
    assert_equal_to_a_local_run,
    assert_trained_once,
    start,
    statuses,
    switch_off,
    tree,
    until,
)

pytest.importorskip("ray", reason="Ray is not installed (pip install 'cwbench[ray]')")
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that takes no work and two nodes that take one fleet each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            made.add_node(num_cpus=1)
        yield made
    finally:
        made.shutdown()


def training_below(node: Any) -> bool:
    """Whether a fleet trains on a node."""
    pid = node.all_processes["raylet"][0].process.pid
    commands = [Path(f"/proc/{one}/cmdline") for one in tree(pid)]
    return any(b"cwbench\0train" in file.read_bytes() for file in commands if file.exists())


def test_a_node_is_lost_while_it_trains(cluster: Any, tmp_path: Path) -> None:
    results = tmp_path / "results"
    args = [*RUN, "--launcher", "ray", "--ray-address", cluster.address, "--cpus-per-fleet", "1"]
    run = start(*args, "--results", str(results), stdout=subprocess.PIPE)
    node = next(iter(cluster.worker_nodes))
    # Both first tasks train, one on each node, and have something to continue from.
    until(lambda: len(list(results.glob("segments/*/snapshot/state.safetensors"))) == 2, 120)
    assert training_below(node)
    killed = switch_off(node.all_processes["raylet"][0].process.pid)
    print(f"killed a node: {len(killed)} processes; {statuses(results)}")
    said = run.communicate()[0]
    print(said)
    assert run.returncode == 0 and "4 segments trained" in said
    assert_trained_once(results, 4)
    # One of the first tasks went on elsewhere, from where its last snapshot was.
    sessions = [s["sessions"] for name, s in statuses(results).items() if "-1-" in name]
    assert sorted(map(len, sessions)) == [1, 2], sessions
    assert_equal_to_a_local_run(results, tmp_path)


def test_an_address_without_a_cluster(tmp_path: Path) -> None:
    args = ["--launcher", "ray", "--ray-address", "127.0.0.1:1", "--results", str(tmp_path / "r")]
    run = start(*RUN, *args, stderr=subprocess.PIPE)
    error = run.communicate()[1]
    assert run.returncode == 2 and "--ray-address 127.0.0.1:1: " in error.splitlines()[-1]
    assert not list(tmp_path.iterdir())

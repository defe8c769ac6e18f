"""Which launcher options make, and which options it would ignore."""

from pathlib import Path

import pytest
import torch

from cwbench.experiment.execution import Launching
from cwbench.experiment.launching import USED_BY, check_launching, make_launcher
from cwbench.launch.local import Local
from cwbench.launch.printed import Printed
from cwbench.launch.ray import Ray
from cwbench.launch.slurm import Slurm
from cwbench.spec.errors import UserError

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_an_option_of_another_launcher_is_refused() -> None:
    with pytest.raises(UserError, match="--slurm-mem has no effect with --launcher ray; it is for"):
        check_launching(Launching(launcher="ray", slurm_mem="4G"))
    check_launching(Launching(launcher="slurm", slurm_mem="4G"))
    assert USED_BY.keys() <= vars(Launching()).keys()


def test_slurms_own_parameters_have_values() -> None:
    with pytest.raises(UserError, match="--slurm-set qos: no value; write NAME=VALUE"):
        check_launching(Launching(launcher="slurm", slurm_set=("qos",)))


def test_launchers_by_name(tmp_path: Path) -> None:
    assert isinstance(make_launcher(Launching(launcher="print"), tmp_path, CPU), Printed)
    ray = make_launcher(Launching(launcher="ray", cpus_per_fleet=3), tmp_path, CUDA)
    assert isinstance(ray, Ray) and (ray.cpus, ray.gpus) == (3, 1)
    given = Launching(launcher="slurm", slurm_partition="long", slurm_set=("qos=a=b",))
    slurm = make_launcher(given, tmp_path, CPU)
    assert isinstance(slurm, Slurm) and slurm.parameters == {"partition": "long"}
    assert slurm.further == {"qos": "a=b"} and slurm.folder == tmp_path / "jobs" / "slurm"


@pytest.mark.parametrize(("devices", "fleets", "processes"), [(1, 1, 0), (2, 1, 2), (1, 3, 3)])
def test_several_gpus_have_a_process_each(
    devices: int, fleets: int, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    made = make_launcher(Launching(fleets_per_gpu=fleets), tmp_path, CUDA)
    assert made is None if not processes else isinstance(made, Local)
    if isinstance(made, Local):
        parallel = made.parallelism()
        assert (parallel.processes, parallel.devices) == (processes, devices)


@pytest.mark.parametrize(
    ("address", "cpus", "gpus", "processes", "share"),
    [
        (None, None, 0, 1, 8),  # on a CPU a fleet takes the machine
        (None, 2, 0, 4, 2),
        (None, None, 2, 2, 4),
        (None, 1, 2, 2, 1),  # more cores than GPUs
        (None, 8, 2, 1, 8),
        ("head:6379", 2, 0, 1, 2),  # how many nodes has a cluster elsewhere?
    ],
)
def test_ray_here_starts_as_many_processes_as_fit(
    address: str | None,
    cpus: int | None,
    gpus: int,
    processes: int,
    share: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cwbench.launch.ray.cores", lambda: 8)
    made = Ray(address, gpu=bool(gpus), cpus=cpus, devices=gpus or 1).parallelism()
    assert (made.processes, made.cores) == (processes, share)


def test_a_cpu_has_one_process(tmp_path: Path) -> None:
    assert make_launcher(Launching(), tmp_path, CPU) is None
    with pytest.raises(UserError, match="--fleets-per-gpu is for GPUs"):
        make_launcher(Launching(fleets_per_gpu=2), tmp_path, CPU)

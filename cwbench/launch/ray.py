"""Fleets as tasks of a Ray cluster. Needs the extra `cwbench[ray]`."""

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cwbench.launch import Command, Tell
from cwbench.launch.command import start
from cwbench.launch.order import describe, drive
from cwbench.planning.fleet_time import Parallelism
from cwbench.planning.machine import cores
from cwbench.spec.errors import UserError, located
from cwbench.spec.extras import extra
from cwbench.spec.text import counted

RETRIES = 20  # of a job whose node or process died; each retry continues from the last snapshot


class Killed(RuntimeError):
    """The command was killed from outside, so that trying again makes sense."""


def train(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """What a Ray worker does: run the command; its exit code."""
    process = start(arguments, environment, log)
    try:
        while process.poll() is None:
            time.sleep(0.2)
    except BaseException:  # cancelled: Ray raises KeyboardInterrupt here
        process.send_signal(signal.SIGTERM)
        process.communicate()
        raise
    if process.returncode < 0:
        raise Killed(f"{' '.join(arguments)} was ended by signal {-process.returncode}")
    return process.returncode


class Ray:
    def __init__(
        self, address: str | None, *, gpu: bool, cpus: int | None, devices: int = 1
    ) -> None:
        """`devices`: GPUs of this machine, or 1 for its CPU."""
        self.address, self.gpus, self.cpus, self.devices = address, int(gpu), cpus, devices

    def check(self) -> None:
        """Connect, so that a wrong address or a cluster without the means is noticed now."""
        ray = _ray()
        _reachable(self.address)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self.address is None:
            quiet["include_dashboard"] = False
        try:
            ray.init(address=self.address or "local", **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            line = str(error).strip().splitlines()[0]
            raise UserError(f"--ray-address {self.address}: {line}") from None
        self._cores(ray)

    def launch(self, commands: Sequence[Command], tell: Tell) -> None:
        ray = _ray()
        cpus = self._cores(ray)
        nodes = counted(len(_nodes(ray)), "node")
        means = f"{counted(cpus, 'CPU')} and {counted(self.gpus, 'GPU')}"
        tell(f"Ray: {nodes}; a fleet takes {means}")
        remote = ray.remote(train).options(
            num_cpus=cpus,
            num_gpus=self.gpus,
            max_retries=RETRIES,
            retry_exceptions=[Killed],
        )
        try:
            drive(commands, _Cluster(ray, remote, cpus, tell))
        finally:
            ray.shutdown()

    def parallelism(self) -> Parallelism:
        """On a cluster elsewhere, of unknown size, one process; here what GPUs and cores allow."""
        share = self.cpus or max(1, cores() // self.devices)
        fit = cores() // share if self.address is None else 1
        most = min(fit, self.devices) if self.gpus else fit
        return Parallelism(processes=max(1, most), devices=self.devices, cores=share)

    def _cores(self, ray: Any) -> int:
        """For a fleet: as asked for, or an equal share of the smallest node that will do."""
        able = [n for n in _nodes(ray) if n.get("GPU", 0) >= self.gpus and n.get("CPU", 0)]
        if not able:
            raise UserError(f"--launcher ray: no node has a {'GPU' if self.gpus else 'CPU'}")
        if self.cpus is None:
            return max(1, min(int(n["CPU"] // (n.get("GPU") or 1)) for n in able))
        if self.cpus > max(n["CPU"] for n in able):
            raise UserError(
                f"--cpus-per-fleet {self.cpus}: no node of the Ray cluster has that many"
            )
        return self.cpus


def _ray() -> Any:
    # A task that asks for no GPU sees none: Ray's future default, without its warning.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
    with located("--launcher ray"):
        return extra("ray", "cwbench[ray]")


def _reachable(address: str | None) -> None:
    """Ray itself tries for minutes before it reports that nothing listens there."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return  # `auto`, or none: Ray itself reports an error at once
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"--ray-address {address}: {error.strerror or error}") from None


def _nodes(ray: Any) -> list[dict[str, float]]:
    """The resources of every living node."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


class _Cluster:
    """Ray finds a node for each command, or lets it wait for one."""

    room = True

    def __init__(self, ray: Any, remote: Any, cpus: int, tell: Tell) -> None:
        self.ray, self.remote, self.tell = ray, remote, tell
        self.environment = {"CWBENCH_CORES": str(cpus)}
        self.running: dict[Any, Command] = {}

    @property
    def busy(self) -> bool:
        return bool(self.running)

    def start(self, command: Command) -> None:
        self.running[self.remote.remote(command.arguments, self.environment, command.log)] = command
        self.tell(f"submitted: {describe(command)}")

    def collect(self) -> list[Command]:
        done, _ = self.ray.wait(list(self.running), timeout=5)
        return [self._end(reference) for reference in done]

    def _end(self, reference: Any) -> Command:
        command = self.running.pop(reference)
        try:
            code = self.ray.get(reference)
            text = "ended" if code == 0 else f"ended with exit code {code}"
        except self.ray.exceptions.RayError as error:
            text = f"given up ({str(error).strip().splitlines()[-1]})"
        self.tell(f"{text}: {describe(command)}")
        return command

    def stop(self) -> None:
        for reference in self.running:
            self.ray.cancel(reference)
        self.ray.wait(list(self.running), num_returns=len(self.running), timeout=60)

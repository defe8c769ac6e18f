"""This machine's devices, one process each, or several that share it."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence

from cwbench.launch import Command, Tell
from cwbench.launch.command import PAUSED, start
from cwbench.launch.order import describe, drive
from cwbench.planning.fleet_time import Parallelism


class Local:
    def __init__(self, devices: Sequence[str], cores: int) -> None:
        """`devices` as CUDA_VISIBLE_DEVICES names them, once for each process."""
        self.devices, self.cores = devices, max(1, cores // len(devices))

    def check(self) -> None:
        pass

    def launch(self, commands: Sequence[Command], tell: Tell) -> None:
        drive(commands, _Devices(self.devices, self.cores, tell))

    def parallelism(self) -> Parallelism:
        devices = len(set(self.devices))
        return Parallelism(processes=len(self.devices), devices=devices, cores=self.cores)


class _Devices:
    def __init__(self, devices: Sequence[str], cores: int, tell: Tell) -> None:
        self.devices, self.cores, self.tell = devices, cores, tell
        # By a device's index in the list.
        self.running: dict[int, tuple[Command, subprocess.Popen[bytes]]] = {}

    @property
    def room(self) -> bool:
        return len(self.running) < len(self.devices)

    @property
    def busy(self) -> bool:
        return bool(self.running)

    def start(self, command: Command) -> None:
        index = next(n for n in range(len(self.devices)) if n not in self.running)
        device = self.devices[index]
        own = {"CUDA_VISIBLE_DEVICES": device, "CWBENCH_CORES": str(self.cores)}
        self.running[index] = (command, start(command.arguments, own, command.log))
        self.tell(f"device {device}: {describe(command)}")

    def collect(self) -> list[Command]:
        time.sleep(0.2)
        done = {
            index: (command, process.returncode)
            for index, (command, process) in self.running.items()
            if process.poll() is not None
        }
        for index, (command, code) in done.items():
            self.running.pop(index)[1].communicate()
            if code not in (0, PAUSED):
                device = self.devices[index]
                self.tell(f"device {device}: {describe(command)}: ended with exit code {code}")
        return [command for command, _ in done.values()]

    def stop(self) -> None:
        for _, process in self.running.values():
            process.send_signal(signal.SIGINT)
        for _, process in self.running.values():
            process.communicate()


def visible_devices(count: int) -> list[str]:
    """Names of this machine's CUDA devices, as this process may see only some of them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[:count] if given else [str(number) for number in range(count)]

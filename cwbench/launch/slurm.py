"""Fleets as Slurm jobs, through submitit. Needs the extra `cwbench[slurm]`.

Each level of a plan is one job array that starts when the arrays before it have ended. Before its
time limit a job gets a signal: the fleet is saved and the job put back into the queue, under the
same number, so that its children keep waiting. Slurm puts jobs of a lost node back by itself.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cwbench.launch import Command, Tell
from cwbench.launch.command import PAUSED, start
from cwbench.launch.order import levels
from cwbench.planning.fleet_time import Parallelism
from cwbench.spec.errors import UserError, located
from cwbench.spec.extras import extra
from cwbench.spec.text import counted

TIMEOUTS = 10_000  # a job is put back as often as it takes
# Of a command that was asked to stop: PAUSED, or a signal that came before it listened to them.
STOPPED = {PAUSED, -signal.SIGTERM, -signal.SIGUSR1, -signal.SIGUSR2}
LINGER_SECONDS = 3600.0  # for Slurm to end a job it has asked to stop
POLL_SECONDS = 0.2


def linger() -> None:
    """Wait for Slurm to end this job.

    Python runs handlers in the main thread. Of signals that come close together, as Slurm's do,
    another thread may take some without waking it, so it must not sleep for long.
    """
    end = time.monotonic() + LINGER_SECONDS
    while time.monotonic() < end:
        time.sleep(POLL_SECONDS)


class SlurmJob:
    """What a Slurm job does; submitit calls `checkpoint` when the time limit is near."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.arguments, self.environment = list(arguments), dict(environment)
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> None:
        self.process = start(self.arguments, self.environment)
        while self.process.poll() is None:
            time.sleep(POLL_SECONDS)
        if self.process.returncode in STOPPED:
            # Slurm asked every process to stop, to preempt the job or to cancel it. If this one
            # returned, a preempted job would count as finished.
            linger()
        if self.process.returncode:
            raise RuntimeError(f"ended with exit code {self.process.returncode}")

    def checkpoint(self) -> Any:
        from submitit.helpers import DelayedSubmission

        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            # Called inside a signal handler, while __call__ polls: Popen's own wait could hang.
            with contextlib.suppress(ChildProcessError):  # __call__ has seen its end
                os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        return DelayedSubmission(SlurmJob(self.arguments, self.environment))


@dataclass(frozen=True)
class Slurm:
    """Submits and returns; Slurm does the waiting."""

    folder: Path  # of logs and of submitit's files; shared with the nodes
    gpu: bool
    cpus: int
    minutes: int
    signal_seconds: int  # before the time limit
    parameters: Mapping[str, Any] = field(default_factory=dict)  # submitit's: partition, mem, ...
    further: Mapping[str, str] = field(default_factory=dict)  # sbatch's own, by name

    def check(self) -> None:
        self._executor()

    def launch(self, commands: Sequence[Command], tell: Tell) -> None:
        executor = self._executor()
        for number, level in enumerate(levels(commands)):
            job = self._submit(executor, level)
            tell(f"level {number + 1}: {counted(len(level), 'fleet')} as Slurm job {job}")
            # After any end: where some parents failed, the others' children can be trained.
            executor.update_parameters(dependency=f"afterany:{job}")
        tell(
            f"submitted; logs are in {self.folder}, `squeue` and `cwbench status` show how it goes"
        )

    def parallelism(self) -> Parallelism:
        return Parallelism(processes=1, cores=self.cpus)

    def _submit(self, executor: Any, commands: Sequence[Command]) -> str:
        """One array of jobs; its number."""
        from submitit.core.utils import FailedJobError

        environment = {"CWBENCH_CORES": str(self.cpus)}
        try:
            with executor.batch():
                jobs = [
                    executor.submit(SlurmJob(command.arguments, environment))
                    for command in commands
                ]
        except FailedJobError as error:
            line = str(error).strip().splitlines()[-1]
            raise UserError(f"--launcher slurm: {line}") from None
        return str(jobs[0].job_id.split("_")[0])

    def _executor(self) -> Any:
        with located("--launcher slurm"):
            submitit = extra("submitit", "cwbench[slurm]")
        try:
            executor = submitit.SlurmExecutor(self.folder, max_num_timeout=TIMEOUTS)
        except RuntimeError:
            raise UserError("--launcher slurm: no srun on this machine") from None
        executor.update_parameters(
            job_name="cwbench",
            time=self.minutes,
            cpus_per_task=self.cpus,
            signal_delay_s=self.signal_seconds,
            stderr_to_stdout=True,
            **({"gpus_per_node": 1} if self.gpu else {}),
            **self.parameters,
            additional_parameters={"requeue": True, **self.further},
        )
        return executor

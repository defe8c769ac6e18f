"""One fleet of a plan on its way through a task. Its groups take turns as their chunks arrive."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from cwbench.fleet.group import Group
from cwbench.fleet.progress import Display
from cwbench.fleet.stop import StopRequest
from cwbench.learner.cuda_graph import collect_garbage
from cwbench.spec.segment import Segment


@dataclass
class Training:
    """Between turns workers collect and evaluate; on an accelerator updates continue as well."""

    segments: Sequence[Segment]  # of the fleet
    streams: Sequence[int]  # numbers of the CUDA streams that it occupies
    progress: Display
    stop: StopRequest
    snapshot_seconds: float
    groups: list[Group] = field(default_factory=list)
    active: list[Group] = field(default_factory=list)  # in the order of their next turns

    def start(self, groups: Iterator[Group]) -> None:
        """Build the groups one by one, and ask for their first chunks."""
        for group in groups:
            self.groups.append(group)
        self.active = list(self.groups)
        self.progress.begin(self.groups)
        for group in self.active:
            with group.stream:
                group.request()

    @property
    def finished(self) -> bool:
        return all(group.finished for group in self.groups)

    def take_turn(self) -> bool:
        """Advance a group for which workers are done; False if there is none."""
        for group in self.active:
            if group.ready:
                self.active.remove(group)
                with group.stream:
                    if self._advance(group):
                        self.active.append(group)
                return True
        return False

    def _advance(self, group: Group) -> bool:
        """Whether there is more to do for it."""
        if group.finished:
            return self._end(group)
        group.learn(pause=bool(self.stop) or self._snapshot_due(group))
        self.progress.advance(group)
        if group.finished or group.collecting:
            return True
        if self.stop:
            group.pause()
            return False
        if self._snapshot_due(group):
            group.snapshot()
        group.request()
        return True

    def _snapshot_due(self, group: Group) -> bool:
        return time.monotonic() - group.snapshot_time > self.snapshot_seconds

    def _end(self, group: Group) -> bool:
        """Two turns: others take theirs while the last evaluation is under way."""
        if not group.ended:
            group.end_task(self.progress.advance)
            return True
        group.finish()
        self.progress.advance(group)
        return False

    def abandon(self) -> None:
        """Release the workers and write nothing more."""
        self.active.clear()
        for group in self.groups:
            group.abandon()

    def free(self, device: torch.device) -> None:
        """Release its memory before the next fleet allocates as much."""
        if device.type == "cuda":  # one given up in the middle of a chunk still reads its replay
            with contextlib.suppress(RuntimeError):  # it has been reported
                torch.cuda.synchronize(device)
        for group in self.groups:
            group.free()
        collect_garbage(device)


def lowest_free(taken: Sequence[int], count: int) -> list[int]:
    """The lowest numbers that are not taken: streams are reused, because they hold memory."""
    return [number for number in range(len(taken) + count) if number not in taken][:count]

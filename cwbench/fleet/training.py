"""One fleet of a plan on its way through a task. Its groups take turns as their chunks arrive."""

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from cwbench.fleet.claiming import Display
from cwbench.fleet.fleet import Fleet
from cwbench.fleet.stop import StopRequest
from cwbench.spec.segment import Segment


@dataclass
class Training:
    """Between turns workers collect and evaluate; on an accelerator updates continue as well."""

    segments: Sequence[Segment]
    streams: Sequence[int]  # numbers of the CUDA streams that it occupies
    progress: Display
    stop: StopRequest
    snapshot_seconds: float
    fleets: list[Fleet] = field(default_factory=list)
    active: list[Fleet] = field(default_factory=list)  # in the order of their next turns

    def start(self, groups: Iterator[Fleet]) -> None:
        """Build the groups one by one, and ask for their first chunks."""
        for fleet in groups:
            self.fleets.append(fleet)
        self.active = list(self.fleets)
        self.progress.begin(self.fleets)
        for fleet in self.active:
            with fleet.stream:
                fleet.request()

    @property
    def finished(self) -> bool:
        return all(fleet.finished for fleet in self.fleets)

    def take_turn(self) -> bool:
        """Advance a group for which workers are done; False if there is none."""
        for fleet in self.active:
            if fleet.ready:
                self.active.remove(fleet)
                with fleet.stream:
                    if self._advance(fleet):
                        self.active.append(fleet)
                return True
        return False

    def _advance(self, fleet: Fleet) -> bool:
        """Whether there is more to do for it."""
        if fleet.finished:
            return self._end(fleet)
        fleet.learn(pause=bool(self.stop) or self._snapshot_due(fleet))
        self.progress.advance(fleet)
        if fleet.finished or fleet.collecting:
            return True
        if self.stop:
            fleet.pause()
            return False
        if self._snapshot_due(fleet):
            fleet.snapshot()
        fleet.request()
        return True

    def _snapshot_due(self, fleet: Fleet) -> bool:
        return time.monotonic() - fleet.snapshot_time > self.snapshot_seconds

    def _end(self, fleet: Fleet) -> bool:
        """Two turns: others take theirs while the last evaluation is under way."""
        if not fleet.ended:
            fleet.end_task(self.progress.advance)
            return True
        fleet.finish()
        self.progress.advance(fleet)
        return False

    def abandon(self) -> None:
        """Release the workers and write nothing more."""
        self.active.clear()
        for fleet in self.fleets:
            fleet.abandon()

    def free(self, device: torch.device) -> None:
        """Release its memory before the next fleet allocates as much.

        A trainer and its method refer to each other, so only the garbage collector frees them;
        and torch caches freed device memory, in pools that captured updates do not share.
        """
        for fleet in self.fleets:
            fleet.free()
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def lowest_free(taken: Sequence[int], count: int) -> list[int]:
    """The lowest numbers that are not taken: streams are reused, because they hold memory."""
    return [number for number in range(len(taken) + count) if number not in taken][:count]

"""A plan's segments among several processes: who trains which."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cwbench.fleet.progress import Display
from cwbench.fleet.stop import StopRequest
from cwbench.spec import failure
from cwbench.spec.segment import Segment
from cwbench.store.claims import Claims
from cwbench.store.results import Store

WAIT_SECONDS = 5.0  # between looks at what other processes are training


@dataclass
class Outcome:
    trained: int = 0
    diverged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # segment folder -> last line of the error
    skipped: int = 0  # children of segments that will not be finished
    elsewhere: int = 0  # segments that another process finished meanwhile
    interrupted: bool = False
    # Segment folder -> steps it was stopped at without saving, and continues from.
    unsaved: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not (self.failed or self.diverged or self.skipped or self.interrupted)


class Shares:
    """A plan's segments among several processes: which are ours now, which are another's."""

    def __init__(
        self,
        store: Store,
        provenance: Callable[[Segment], Mapping[str, Any]],
        claims: Claims,
        outcome: Outcome,
        progress: Display,
    ) -> None:
        self.store, self.provenance, self.claims = store, provenance, claims
        self.outcome, self.progress = outcome, progress
        self.moved = False  # since the last look
        self.ours: set[str] = set()  # segments that this process trains now
        self.watched: set[str] = set()  # segments that others had claimed
        self.waiting: set[str] = set()  # segments still to come, here or elsewhere

    def sort(self, segments: Sequence[Segment]) -> tuple[list[Segment], list[Segment]]:
        """Segments claimed for this process, and those to check later."""
        ours, later = [], []
        for segment in segments:
            try:
                verdict = self._judge(segment)
            except OSError as error:  # its folder cannot be written: other segments go on
                self.outcome.failed[segment.folder] = failure.last_line(error)
                verdict = "gone"
            self.waiting.discard(segment.id)
            if verdict == "ours":
                ours.append(segment)
                self.ours.add(segment.id)
            elif verdict == "later":
                later.append(segment)
                self.waiting.add(segment.id)
            else:
                self.progress.leave(segment)
            self.moved |= verdict != "later"
        return ours, later

    def _judge(self, segment: Segment) -> str:
        """ours, later, or gone: nothing is left to do for it here."""
        folder = self.store.folder(segment)
        state = folder.state
        if state == "done":
            self.outcome.elsewhere += 1
            return "gone"
        if state == "damaged":
            self.outcome.failed[segment.folder] = folder.status()["message"]
            return "gone"
        if self.claims.elsewhere(folder):
            self.watched.add(segment.id)
            return "later"
        if segment.id in self.watched and state in ("failed", "diverged"):
            message = folder.status().get("message") or f"{state} in another process"
            self.outcome.failed[segment.folder] = message
            return "gone"
        for parent in segment.parents:
            if not self.store.folder(parent).done:
                return self._orphan(parent)
        folder.create(segment, self.provenance(segment))
        return "ours" if self.claims.take(folder) else "later"

    def _orphan(self, parent: Segment) -> str:
        """A segment with an unfinished parent: later if that may be done, else gone."""
        if parent.id in self.waiting | self.ours or self.claims.elsewhere(
            self.store.folder(parent)
        ):
            return "later"
        if self.store.folder(parent).done:  # just now
            return "later"
        self.outcome.skipped += 1
        return "gone"

    def release(self, segments: Sequence[Segment]) -> None:
        """This process no longer trains them."""
        for segment in segments:
            self.claims.release(self.store.folder(segment))
            self.ours.discard(segment.id)

    def wait(self, fleets: Sequence[Sequence[Segment]], stop: StopRequest) -> None:
        """Wait a while, or until asked to stop."""
        self.moved = False
        self.progress.wait(sum(map(len, fleets)))
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end and not stop:
            time.sleep(min(0.2, WAIT_SECONDS))

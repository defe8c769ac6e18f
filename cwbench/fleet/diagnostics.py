"""Diagnostics of a group as files: a table per segment, and a probe of its policy at its end."""

from collections.abc import Sequence
from typing import Any

import torch

from cwbench.learner import diagnostics
from cwbench.learner.diagnostics import Probe
from cwbench.learner.method import Method, ask
from cwbench.learner.trainer import Trainer
from cwbench.spec.segment import Segment
from cwbench.store import checkpoint
from cwbench.store.results import DIAGNOSTICS, DIAGNOSTICS_COLUMNS, SegmentFolder, Store

FIELDS = ("obs", "mean", "log_std")


class Diagnostics:
    """What is measured of one group at its evaluations."""

    def __init__(
        self,
        store: Store,
        segments: Sequence[Segment],
        folders: Sequence[SegmentFolder],
        trainer: Trainer,
        method: Method[Any],
    ) -> None:
        self.folders, self.trainer, self.method = folders, trainer, method
        self.probes = {
            position: found
            for position in range(segments[0].position)
            if (found := _load(store, segments, position, trainer.device))
        }

    def write(self, step: int) -> None:
        values = diagnostics.measure(self.trainer, str(self.trainer.updates))
        for position, then in self.probes.items():
            weights = ask(self.method, "policy_weights", position)
            change = diagnostics.divergence(self.trainer, weights, position, then)
            values["kl", str(position)] = change
        table = torch.stack(list(values.values()), 1).tolist()  # [R, quantities]
        for folder, numbers in zip(self.folders, table, strict=True):
            rows = [(step, *key, x) for key, x in zip(values, numbers, strict=True)]
            folder.append(DIAGNOSTICS, DIAGNOSTICS_COLUMNS, rows)

    def keep_probe(self) -> None:
        """Write what the policies answer at the end of their task."""
        weights = ask(self.method, "policy_weights", self.trainer.position)
        now = diagnostics.probe(self.trainer, weights)
        tensors = {name: getattr(now, name) for name in FIELDS}
        for run, folder in enumerate(self.folders):
            folder.check_claim()
            checkpoint.save(folder.probe, checkpoint.one_run(tensors, run), {})


def _load(
    store: Store, segments: Sequence[Segment], position: int, device: torch.device
) -> Probe | None:
    """The probes of some runs at an earlier position, if all of them have one."""
    files = [store.folder(segment.ancestor(position)).probe for segment in segments]
    if not all(file.exists() for file in files):
        return None
    tensors = checkpoint.stack([checkpoint.load(file)[0] for file in files])
    return Probe(*(tensors[name].to(device) for name in FIELDS))

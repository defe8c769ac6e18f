"""What a session trains with: a device, workers, memory, and what training costs there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cwbench.experiment.execution import LARGEST_FLEET, Execution, Launching, torch_set_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from cwbench.experiment.build import Methods
    from cwbench.launch import Launcher
    from cwbench.planning.costs import Costs
    from cwbench.planning.estimate import Memory
    from cwbench.planning.fleet_time import Parallelism
    from cwbench.planning.plan import Grouping, Plan
    from cwbench.spec.segment import Segment

# Fleets that train at the same time, where memory allows. On a CPU one fleet's updates and workers
# use all cores in turn.
SIDE_BY_SIDE = {"cpu": 1, "cuda": 64}


@dataclass(frozen=True)
class Resources:
    methods: Methods
    execution: Execution
    device: torch.device
    launching: Launching | None = None  # None: in this process, on one device
    launcher: Launcher | None = None  # starts other processes; None: this one trains
    groups: Grouping | None = None  # how a fleet is split; None: as suits the device
    _threads: list[int] = field(default_factory=list, init=False)  # once they are chosen

    @property
    def here(self) -> bool:
        """Whether it certainly trains on this machine."""
        return self.launching is None or self.launching.here

    def torch_set_up(self) -> AbstractContextManager[None]:
        """Inside the block torch is set up as for training, if this machine trains."""
        return torch_set_up(self.execution) if self.here else nullcontext()

    @property
    def fleet_size(self) -> int:
        """Runs of a fleet, at most."""
        return self.execution.fleet_size or LARGEST_FLEET[self.device.type]

    @property
    def side_by_side(self) -> int:
        """Fleets that a process trains at the same time, at most."""
        return self.execution.side_by_side or SIDE_BY_SIDE[self.device.type]

    @property
    def grouping(self) -> Grouping:
        from cwbench.planning.plan import groups_on_cuda, one_group

        return self.groups or (groups_on_cuda if self.device.type == "cuda" else one_group)

    @cached_property
    def parallelism(self) -> Parallelism:
        """What trains at the same time; of another machine no more than one process is known."""
        from cwbench.planning.fleet_time import Parallelism
        from cwbench.planning.machine import cores

        if self.launcher is not None:
            return self.launcher.parallelism()
        return Parallelism(self.side_by_side, cores=cores())

    @property
    def devices(self) -> int:
        """Devices of this machine that train at the same time."""
        import torch

        local = self.launching is not None and self.launching.launcher == "local"
        return max(1, torch.cuda.device_count()) if local and self.device.type == "cuda" else 1

    @cached_property
    def costs(self) -> Costs:
        from cwbench.planning.costs import Costs
        from cwbench.planning.time_cache import TimeCache
        from cwbench.spec.environment import cache_folder

        cache = TimeCache(cache_folder() / "times.json", self.device) if self.here else None
        compiled = bool(self.execution.compile)
        return Costs(self.methods, self.device, compiled=compiled, cache=cache)

    def workers(self, plan: Plan) -> int:
        """Of each process."""
        return self._workers(self.parallelism.runs(plan.fleets) or 1)

    def _workers(self, runs: int) -> int:
        """Two for each run, and no more than there are cores."""
        return self.execution.workers or min(self.parallelism.cores, 2 * runs)

    def memory(self, fleets: Sequence[Sequence[Segment]]) -> Memory:
        """Memory that is free now, while no more than these fleets train."""
        from cwbench.planning.estimate import Memory, process_bytes

        sharing = self.parallelism.fleets_per_device if self.parallelism.processes else 1
        segments = [segment for fleet in fleets for segment in fleet]
        runs = self.parallelism.runs(fleets) or 1
        processes = process_bytes(segments, self._workers(runs), runs)
        return Memory(self.costs, self.grouping, processes=processes, fleets=sharing)

    def set_threads(self, plan: Plan) -> None:
        """Let torch use as many threads as train this plan fastest; measured once."""
        import torch

        from cwbench.planning.costs import pick_threads
        from cwbench.planning.machine import most_threads

        if not plan.missing:
            return
        if not self._threads:
            most = min(self.parallelism.cores, most_threads())
            self._threads.append(self.execution.threads or pick_threads(plan, self.costs, most))
        torch.set_num_threads(self._threads[0])

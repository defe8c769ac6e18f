"""From runs to trained segments: open a results folder, plan, estimate, record, train.

session = open_session(results, methods, segments, protocol=protocol)  # segments of all runs
plan = session.plan(runs)
session.record({"my experiment": runs})
session.train(plan)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from cwbench.experiment import provenance
from cwbench.experiment.build import load_method
from cwbench.experiment.execution import Execution, Launching, planned_device
from cwbench.experiment.launching import check_launching, make_launcher, method_names
from cwbench.experiment.listener import Listener, Silent
from cwbench.experiment.live_page import LivePage
from cwbench.experiment.resources import Resources
from cwbench.experiment.results_folder import open_store
from cwbench.experiment.summary import describe, disk_shortage, tell_outcome, tell_states
from cwbench.spec.errors import UserError
from cwbench.spec.failure import blamed_on
from cwbench.spec.segment import Segment
from cwbench.spec.text import counted
from cwbench.store.files import check_output
from cwbench.store.results import Store

if TYPE_CHECKING:
    import torch

    from cwbench.experiment.build import Methods
    from cwbench.fleet.claiming import Outcome
    from cwbench.fleet.runner import Runner
    from cwbench.launch import Launcher
    from cwbench.planning.estimate import Estimate
    from cwbench.planning.forecast import Forecast
    from cwbench.planning.plan import Fits, Grouping, Plan, Run
    from cwbench.rollout.pool import Pool


class Paused(KeyboardInterrupt):
    """Training was asked to stop; what it had done is saved."""

    def __init__(self) -> None:
        super().__init__("training is paused; the same call continues")


@dataclass(frozen=True)
class Session:
    """A results folder, the methods, and the means to train with them."""

    store: Store
    methods: Methods
    execution: Execution
    device: torch.device
    launching: Launching | None = None  # None: in this process, on one device
    listener: Listener = field(default_factory=Silent)
    protocol: str = ""  # its name, which new segments record
    command: str = ""  # recorded as the way to continue
    groups: Grouping | None = None  # how a fleet is split; None: as suits the device
    fits: Fits | None = None  # whether a fleet fits into memory; None: measure

    @cached_property
    def method_classes(self) -> Methods:
        """The methods, and those that train experts for them."""
        names = {method.experts for method in self.methods.values()} - {None, *self.methods}
        return {**self.methods, **{name: load_method(name)[1].method for name in names if name}}

    @cached_property
    def launcher(self) -> Launcher | None:
        """Who starts other processes; None if this one trains."""
        if self.launching is None:
            return None
        return make_launcher(self.launching, self.store.root, self.device)

    @cached_property
    def resources(self) -> Resources:
        return Resources(
            self.method_classes,
            self.execution,
            self.device,
            self.launching,
            self.launcher,
            self.groups,
        )

    # Planning

    def plan(self, runs: Sequence[Run], segments: Sequence[Segment] = ()) -> Plan:
        """Fleets of what is missing, as large as is useful and fits. Writes nothing.

        Another machine's memory is known to that machine: it splits what does not fit.
        """
        from cwbench.planning.limits import check_processes, check_weights, does_not_fit
        from cwbench.planning.plan import TooLarge, make_plan, with_experts

        runs = with_experts(runs)
        last = [*(run.segments[-1] for run in runs), *segments]
        missing = [segment for segment in last if not self.store.folder(segment).done]
        size = self.resources.fleet_size
        fleets = [missing[start : start + size] for start in range(0, len(missing), size)]
        here, memory = self.resources.here, self.resources.memory(fleets)
        if here and self.fits is None and missing:
            check_processes(memory)
            check_weights(missing, memory.free)
        try:
            with self.resources.torch_set_up(), blamed_on(self.methods.values()):
                return make_plan(
                    runs,
                    self.store,
                    self.resources.fleet_size,
                    segments=segments,
                    fits=self.fits or (memory.fits if here else lambda fleet: True),
                    devices=self.resources.devices,
                )
        except TooLarge as error:
            raise does_not_fit(error.segment, memory) from None

    def estimate(self, plan: Plan) -> Estimate:
        """What a plan needs; its time only if it trains on this machine."""
        from cwbench.planning.estimate import estimate

        with self.resources.torch_set_up(), blamed_on(self.methods.values()):
            if self.resources.here:
                self.resources.set_threads(plan)
            return estimate(
                plan,
                self.resources.costs,
                self.resources.workers(plan),
                grouping=self.resources.grouping,
                measure=self.resources.here,
                parallel=self.resources.parallelism,
                resumed=self._resumed(plan),
            )

    def _resumed(self, plan: Plan) -> dict[str, int]:
        """The steps that each segment with a snapshot has left."""
        from cwbench.store.integrity import saved_step

        segments = [segment for fleet in plan.fleets for segment in fleet]
        steps = ((segment, saved_step(self.store.folder(segment))) for segment in segments)
        return {segment.id: segment.steps - step for segment, step in steps if step}

    def describe(self, plan: Plan, needs: Estimate) -> list[str]:
        """A plan in a few lines: runs, steps, memory, time."""
        resumed, workers = self._resumed(plan), counted(self.resources.workers(plan), "worker")
        if processes := self.resources.parallelism.processes:
            each = " each" if processes > 1 else ""
            workers = f"{counted(processes, 'process', 'processes')} with {workers}{each}"
        lines = describe(plan, needs, resumed, self.device.type, workers)
        return lines + disk_shortage(self.store.root, needs.disk_bytes)

    # Training

    def check(self, plan: Plan) -> None:
        """UserError if the launcher cannot do it; call it before anything is written."""
        if plan.missing and self.launcher is not None:
            self.launcher.check()

    def record(self, experiments: Mapping[str, Sequence[Run]]) -> None:
        """Write down which runs belong together, under which names."""
        from cwbench.planning.plan import with_experts

        for name, runs in experiments.items():
            asked = [run.record() for run in with_experts(runs)]
            how = {"command": self.command, "created": time.time()}
            self.store.add_experiment({"name": name, "runs": asked, **how})
            self._keep_sources(runs)

    def _keep_sources(self, runs: Sequence[Run]) -> None:
        """Results of a method from outside the package come with its code."""
        from cwbench.spec.notebook_source import hashed_code

        used = {(s.setup.method, s.setup.source) for run in runs for s in run.segments}
        for method, source in used:
            if source:
                self.store.add_source(source, hashed_code(self.methods[method], source))

    def carry_out(
        self, plan: Plan, estimate: Estimate | None = None, *, live: bool = False
    ) -> bool:
        """Train, here or through the launcher, and say how it ended. False if not all is done.

        `live` keeps RESULTS/report/index.html up to date meanwhile. Raises Paused after a request
        to stop.
        """
        with self._live_page() if live and self._waits else nullcontext():
            if self.launcher is not None:
                return self.launch(plan, self.launcher, estimate=estimate)
            outcome = self.train(plan, estimate=estimate)
            if outcome.interrupted:
                raise Paused
            return outcome.good

    @property
    def _waits(self) -> bool:
        """Whether training has ended when `carry_out` returns."""
        return self.launching is None or self.launching.waits

    def _live_page(self) -> AbstractContextManager[object]:
        """Keeps the page up to date inside, unless it would be written elsewhere."""
        results = self.store.root
        try:
            page = check_output(results, results / "report") / "index.html"
        except UserError as error:
            self.listener.warn(f"no live page: {error}")
            return nullcontext()
        self.listener.say(
            f"page: {page.resolve().as_uri()}, there in seconds, rewritten every minute or so"
        )
        return LivePage(results, self.listener.warn)

    def train(
        self, plan: Plan, pool: Pool | None = None, *, estimate: Estimate | None = None
    ) -> Outcome:
        """Train in this process, with new workers or those of a pool."""
        with self.resources.torch_set_up():
            with blamed_on(self.methods.values()):
                self.resources.set_threads(plan)
            return self._train(plan, pool, estimate)

    def _train(self, plan: Plan, pool: Pool | None, estimate: Estimate | None) -> Outcome:
        from cwbench.rollout.pool import Pool

        forecast, start = self._forecast(plan, estimate), time.monotonic()
        with self.listener.progress(forecast) as progress:
            runner = self._runner(plan)
            if pool is not None:
                outcome = runner.run(plan, pool, progress)
            else:
                with Pool(
                    self.resources.workers(plan), timeout=self.execution.worker_timeout
                ) as own:
                    outcome = runner.run(plan, own, progress)
        cache = self.resources.costs.cache
        if outcome.good and cache and forecast.missed(time.monotonic()):
            cache.forget_used()  # they were measured while others used the machine
        seconds = time.monotonic() - start
        tell_outcome(outcome, self.listener, self.store, self.command, seconds)
        return outcome

    def _forecast(self, plan: Plan, estimate: Estimate | None = None) -> Forecast:
        """When a plan ends, from earlier measurements and the progress of training."""
        from cwbench.planning.forecast import Forecast, steps_alone

        resumed, parallelism = self._resumed(plan), self.resources.parallelism
        if estimate is not None and estimate.seconds is not None:
            return Forecast(plan.fleets, estimate.fleets, parallelism, resumed)
        costs = self.resources.costs
        needs = [steps_alone(fleet, costs.own_steps(fleet)) for fleet in plan.fleets]
        return Forecast(plan.fleets, needs, parallelism, resumed, measured=False)

    def _runner(self, plan: Plan) -> Runner:
        from cwbench import envs
        from cwbench.fleet.runner import Runner

        described = provenance.describe(
            self.protocol,
            self.device,
            compiled=bool(self.execution.compile),
            gradients=self.execution.gradients,
            command=self.command,
        )
        classes = self.method_classes
        return Runner(
            self.store,
            classes,
            self.device,
            envs.dims,
            grouping=self.resources.grouping,
            compiled=bool(self.execution.compile),
            gradients=self.execution.gradients,
            diagnose=bool(self.execution.diagnostics),
            snapshot_seconds=60 * self.execution.snapshot_minutes,
            side_by_side=self.resources.side_by_side,
            room=self._room(plan),
            # Reports must know which shared options are the method's own choice.
            provenance=lambda s: described | {"preset": dict(classes[s.setup.method].preset)},
        )

    def _room(self, plan: Plan) -> Callable[[Sequence[Sequence[Segment]]], bool]:
        """Whether fleets fit into memory together; measured before the first one takes some."""
        if self.resources.side_by_side == 1 or self.fits is not None:
            return lambda fleets: True
        memory = self.resources.memory(plan.fleets)
        free = memory.free  # later, what fleets have taken would count twice
        return lambda fleets: sum(map(memory.needed, fleets)) <= free

    def launch(self, plan: Plan, launcher: Launcher, *, estimate: Estimate | None = None) -> bool:
        """Train through separate commands, here or elsewhere."""
        from cwbench.launch import Command
        from cwbench.launch.jobs import write_jobs

        asked = {"protocol": self.protocol, "command": self.command}
        jobs = write_jobs(plan, self.store, method_names(self.method_classes), asked)
        arguments = [*self.execution.arguments(), *self._trust(plan)]
        commands = [Command(job, ["train", str(job.file), *arguments]) for job in jobs]
        start = time.monotonic()
        try:
            with self._watching(plan, estimate) if self._waits else nullcontext():
                launcher.launch(commands, self.listener.say)
        except KeyboardInterrupt:
            self.listener.warn(f"stopped; to continue: {self.command}")
            raise Paused from None
        seconds = time.monotonic() - start
        return not self._waits or tell_states(plan, self.store, self.listener, seconds)

    @contextmanager
    def _watching(self, plan: Plan, estimate: Estimate | None) -> Iterator[None]:
        """Inside the block, show how far other processes are."""
        from cwbench.fleet.watch import failures, look_at, now_and_then

        forecast = self._forecast(plan, estimate)
        with self.listener.progress(forecast) as progress:
            earlier = failures(self.store, forecast)
            progress.watch(now_and_then(partial(look_at, self.store, forecast, earlier)))
            yield

    def _trust(self, plan: Plan) -> list[str]:
        """The user has named their own code, which job files repeat."""
        from cwbench.experiment.trust import named_code

        names = method_names(self.method_classes)
        setups = {s.setup for fleet in plan.fleets for s in fleet}
        code = (name for s in setups for name in named_code(names[s.method], s.env.record()))
        return ["--trust"] if any(code) else []


def open_session(
    results: Path,
    methods: Methods,
    segments: Sequence[Segment],
    *,
    execution: Execution | None = None,
    launching: Launching | None = None,
    listener: Listener | None = None,
    protocol: str = "",
    command: str = "",
) -> Session:
    """A session for these segments. Writes nothing."""
    _check_names(segments)
    execution = execution or Execution()
    check_launching(launching or Launching())
    device = planned_device(execution, launching or Launching())
    listener = listener or Silent()
    if launching is None or launching.here:
        execution = execution.settled(device, max(segment.steps for segment in segments))
        execution = _as_possible(execution, device, listener)
    return Session(
        open_store(results),
        methods,
        execution,
        device,
        launching,
        listener,
        protocol,
        command,
    )


def _as_possible(execution: Execution, device: torch.device, listener: Listener) -> Execution:
    """Without compilation if this machine cannot compile: plan, training and record must agree."""
    from cwbench.learner.compiler import missing_compiler

    if not execution.compile or not (missing := missing_compiler(device.type)):
        return execution
    listener.warn(f"updates are not compiled: {missing}")
    return replace(execution, compile=False)


def _check_names(segments: Sequence[Segment]) -> None:
    """UserError if two methods have one name: their segments would be trained by one of them."""
    sources: dict[str, str | None] = {}
    for setup in (segment.setup for segment in segments):
        if sources.setdefault(setup.method, setup.source) != setup.source:
            raise UserError(f"two methods are called {setup.method}", "rename one of the classes")

"""What must hold for every method: `cwbench check`, and the tests of the built-in ones.

Each check trains on the point mass or makes a few updates on random data, and raises `Broken` with
one line that says what differs.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cwbench import envs
from cwbench.experiment import toy
from cwbench.experiment.attributes import attributes, changed
from cwbench.experiment.build import load_method, make_run, make_setup
from cwbench.experiment.declaration import check_hooks, check_options
from cwbench.learner.hooks import no_global_randomness
from cwbench.learner.method import OF_POSITIONS, ask
from cwbench.planning.rehearsal import PeakBytes, Rehearsal
from cwbench.rollout.pool import Pool
from cwbench.sequences import Sequence as TaskSequence
from cwbench.spec.config import ScheduleConfig
from cwbench.spec.errors import UserError
from cwbench.spec.failure import describe, where_it_failed
from cwbench.spec.options import checked, per_run_names
from cwbench.spec.segment import Segment
from cwbench.store import checkpoint
from cwbench.store.results import Store

TWO = toy.TASKS[:2]
SCHEDULE = ScheduleConfig(  # 20 updates a task, in eight chunks
    steps_per_task=30,
    eval_every=15,
    eval_episodes=1,
    start_steps=5,
    update_after=10,
    update_every=5,
)
# What makes task ends short, and a memory smaller than two tasks.
OPTIONS: dict[str, dict[str, Any]] = {
    "ewc": {"importance_samples": 64},
    "mas": {"importance_samples": 64},
    "er": {"memory": 20},
}


class Broken(AssertionError):
    """A method does not keep its contract."""


class Stopped(Broken):
    """Training failed, so nothing could be compared."""


@dataclass(frozen=True)
class Kit:
    """A method to be checked, a folder for its runs, and workers."""

    name: str  # as on the command line
    root: Path
    pool: Pool

    @property
    def method(self) -> Any:
        return load_method(self.name)[1].method

    def train(self, folder: str, **how: Any) -> toy.ToyResult:
        options = {**OPTIONS.get(load_method(self.name)[0], {}), **how.pop("options", {})}
        how = {"tasks": TWO, "schedule": SCHEDULE, "options": options, **how}
        made = toy.train_toy(self.pool, self.root / folder, self.name, **how)
        for message in made.outcome.failed.values():
            raise Stopped(f"training failed: {message}")
        return made

    @cached_property
    def fleet(self) -> toy.ToyResult:
        """Two runs trained together, which several checks compare with."""
        return self.train("fleet", seeds=(0, 1))

    @cached_property
    def alone(self) -> toy.ToyResult:
        """The second of them by itself."""
        return self.train("alone", seeds=(1,))

    def rehearse(self, position: int, runs: int = 2) -> Rehearsal:
        """A trainer at a position of a long sequence, on random data."""
        base, entry = load_method(self.name)
        sequence = TaskSequence("toy", (toy.TASKS * 2)[: position + 1], "pointmass")
        given = {**toy.SMALL, **dataclasses.asdict(toy.SCHEDULE), **toy.OPTIONS.get(base, {})}
        setup = make_setup(base, entry, "paper", given, sequence)
        segment = make_run(entry, base, setup, "toy", sequence, 0).segments[-1]
        fleet = [replace(segment, seed=seed) for seed in range(runs)]
        return Rehearsal(fleet, entry.method, envs.dims(setup.env), torch.device("cpu"))


# Comparing runs


def ends(store: Store, segments: Sequence[Segment]) -> list[dict[str, Tensor]]:
    return [checkpoint.load(store.folder(segment).end)[0] for segment in segments]


def rows(store: Store, segment: Segment, name: str) -> list[str]:
    """A CSV without its last column where that is wall time."""
    text = (store.folder(segment).path / name).read_text().splitlines()
    return [line.rsplit(",", 1)[0] for line in text] if name == "train.csv" else text


def require_same(one: Store, other: Store, segments: Sequence[Segment]) -> None:
    """Broken unless these segments ended with the same weights and tables in both folders."""
    if not segments:
        raise Broken("nothing was trained")
    for segment, a, b in zip(segments, ends(one, segments), ends(other, segments), strict=True):
        where = f"seed {segment.seed}, task {segment.position + 1}"
        names = [name for name in a if name not in b or not torch.equal(a[name], b[name])]
        if names or a.keys() != b.keys():
            raise Broken(f"{where}: {', '.join(names[:3]) or 'names'} differ")
        for name in ("evals.csv", "train.csv"):
            if rows(one, segment, name) != rows(other, segment, name):
                raise Broken(f"{where}: {name} differs")


# The checks


def options_survive(kit: Kit) -> None:
    """Options are declared as they must be, and survive being written to a record."""
    check_options(kit.method)


def names_are_known(kit: Kit) -> None:
    """No hook is misspelt: it would be ignored."""
    check_hooks(kit.method)


def no_state_is_lost(kit: Kit) -> None:
    """What `on_task_end` assigns is named in `state_names`, or assigned again at the next start."""
    if kit.method.trains_jointly:
        return  # no task follows
    trainer = kit.rehearse(1)
    started = attributes(trainer.method)
    trainer.method.end_task(1)
    trainer.method.state()  # says what cannot be kept
    ended = attributes(trainer.method)
    trainer.method.on_task_start(1)
    again = changed(ended, attributes(trainer.method))
    if lost := set(changed(started, ended)) - set(again) - set(kit.method.state_names):
        raise Broken(
            f"on_task_end changes self.{min(lost)}, but each task has a new object: name it in "
            "state_names (tensors), or set it in on_task_start"
        )


def hooks_keep_their_shapes(kit: Kit) -> None:
    """Hooks return [R] and draw no global random numbers, in 20 updates of each of three tasks."""
    for position in range(1 if kit.method.trains_jointly else 3):
        trainer = kit.rehearse(position)
        for _ in range(20):
            trainer.streams.seek(trainer.updates)
            trainer.checked(trainer.update)
            trainer.updates += 1
        for hook in OF_POSITIONS:
            earlier = hook.endswith("_weights")  # training asks for lanes of the current task only
            for seen in range(0 if earlier else position, position + 1):
                ask(trainer.method, hook, seen)
        with torch.no_grad(), no_global_randomness(trainer.method, "at_interval"):
            trainer.streams.seek(trainer.updates - 1)
            trainer.method.at_interval()


HOOKS = (
    *("sample_batch", "actor_penalty", "critic_penalty", "adjust_gradients", "after_update"),
    *("at_interval", "on_task_start", "on_task_end"),
)


def replay_is_left_alone(kit: Kit) -> None:
    """No hook changes stored transitions: snapshots write each once, when it is new."""
    trainer = kit.rehearse(0 if kit.method.trains_jointly else 1)
    method = trainer.method
    for hook in HOOKS:
        setattr(method, hook, _leaving_replay(trainer, hook, getattr(method, hook)))
    trainer.train(2)
    with torch.no_grad():  # as in training
        method.at_interval()
    method.end_task(trainer.position)
    method.on_task_start(trainer.position)


def _leaving_replay(trainer: Rehearsal, name: str, hook: Callable[..., Any]) -> Any:
    def guarded(*args: Any) -> Any:
        replay = trainer.replay
        rows, added = replay.rows.clone(), dict(replay.added)
        made = hook(*args)
        if added != replay.added or not torch.equal(rows, replay.rows):
            raise Broken(f"{name} changes stored transitions: change a copy of them")
        return made

    return guarded


def member_equals_alone(kit: Kit) -> None:
    """A run has the same numbers alone and among others."""
    require_same(kit.fleet.store, kit.alone.store, kit.alone.plan.segments)


def sweep_equals_alone(kit: Kit) -> None:
    """Runs that differ in per-run options have the same numbers as alone."""
    config = kit.method.config_class()
    # Zero trains in a separate fleet.
    values = {key: x for key in per_run_names(type(config)) if (x := getattr(config, key))}
    if not values:
        return
    sweep = [{key: _another(config, key) for key in values}, values]
    fleet, plan, _ = kit.train("sweep", seeds=(1,), sweep=sweep)
    require_same(fleet, kit.alone.store, kit.alone.plan.segments)
    first, second = ends(fleet, plan.fleets[-1])
    if all(torch.equal(first[key], second[key]) for key in first):
        raise Broken(f"changing {', '.join(values)} has no effect")


def _another(config: Any, name: str) -> float:
    """Another value that an option may have."""
    value: float = getattr(config, name)
    try:
        return float(checked(type(config), name, 30 * value))
    except UserError:  # too large
        return value / 30


def resumed_equals_uninterrupted(kit: Kit) -> None:
    """A run that was interrupted in each task ends with the numbers of one that was not."""
    # In the first task and in the second, each after several snapshots with updates between them.
    for chunks in (7, 13):
        stopped = kit.train("parts", seeds=(0, 1), stop_after=chunks, groups=2, snapshot_seconds=0)
        if not stopped.outcome.interrupted:
            raise Broken("the run could not be interrupted")
    parts, _, outcome = kit.train("parts", seeds=(0, 1))
    if outcome.interrupted:
        raise Broken("the run could not be continued")
    require_same(kit.fleet.store, parts, kit.fleet.plan.segments)


def neighbours_are_untouched(kit: Kit) -> None:
    """A run whose weights are not finite does not change the others of its fleet."""
    if kit.method.trains_jointly:
        return  # one segment, so no parent to break
    clean, plan, _ = kit.fleet
    broken = Store(shutil.copytree(clean.root, kit.root / "broken"))
    for segment in plan.segments:  # break seed 0's first task, train both second tasks again
        folder = broken.folder(segment)
        if segment.position == 0 and segment.seed == 0:
            tensors, record = checkpoint.load(folder.end)
            for tensor, x in tensors.items():
                if tensor.startswith(("trainer/actor.", "method/")) and x.is_floating_point():
                    x.fill_(float("nan"))
            checkpoint.save(folder.end, tensors, record)
            folder.set_status("done", checksums=folder.seal())
        elif segment.position == 1:
            folder.end.unlink()
            folder.set_status("pending")
    _, _, outcome = kit.train("broken", seeds=(0, 1))
    if not [folder for folder in outcome.diverged if "-s0-" in folder]:
        raise Broken("a run that starts from NaN did not diverge")
    require_same(clean, broken, [segment for segment in plan.segments if segment.seed == 1])


class _NoSynchronisation(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses operations that read a tensor's value or whose shape depends on one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _reads_values(func, args):
            raise Broken(f"an update hook reads a tensor's value ({func.name()})")
        return func(*args, **(kwargs or {}))


def _reads_values(func: Any, args: Sequence[Any]) -> bool:
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    if func is torch.ops.aten.index.Tensor:  # its shape is dynamic only for masks
        return any(x is not None and x.dtype == torch.bool for x in args[1])
    return any(tag in func.tags for tag in tags)


def updates_can_be_captured(kit: Kit) -> None:
    """Update hooks are tensor code: no value is read, and state changes in place only.

    So is `at_interval` with `captures_interval`.
    """
    trainer = kit.rehearse(0 if kit.method.trains_jointly else 1)
    trainer.train(1)
    before, plain = _addresses(trainer), _plain_values(trainer.method)
    with _NoSynchronisation():  # type: ignore[no-untyped-call]
        trainer.streams.seek(trainer.updates)
        trainer.update()
        if trainer.method.captures_interval:
            with torch.no_grad():  # as in training
                trainer.method.at_interval()
    for name, address in _addresses(trainer).items():
        if before.get(name, address) != address:
            raise Broken(f"an update replaces the tensor {name}: change it in place")
    for name, value in _plain_values(trainer.method).items():
        if plain.get(name, value) != value:
            raise Broken(f"an update changes self.{name}, a Python value: use a tensor")


def _addresses(trainer: Rehearsal) -> dict[str, int]:
    tensors = trainer.method.state() | trainer.state()
    return {name: tensor.data_ptr() for name, tensor in tensors.items()}


def _plain_values(method: Any) -> dict[str, Any]:
    return {k: v for k, v in vars(method).items() if isinstance(v, int | float | bool | str)}


def memory_stays(kit: Kit) -> None:
    """Updates leave no tensors behind."""
    trainer = kit.rehearse(0 if kit.method.trains_jointly else 1)
    trainer.train(3)
    with PeakBytes() as counted:
        sizes = []
        for _ in range(4):
            trainer.train(2)
            sizes.append(counted.now)
    if sizes[-1] > sizes[-2] > sizes[-3]:
        raise Broken(f"each update leaves {(sizes[-1] - sizes[-2]) // 2:,} bytes allocated")


CHECKS: dict[str, Callable[[Kit], None]] = {
    "options survive their record": options_survive,
    "hooks have known names": names_are_known,
    "state reaches the next task": no_state_is_lost,
    "hooks return one value per run, no global random numbers": hooks_keep_their_shapes,
    "updates can be captured": updates_can_be_captured,
    "updates leave no memory behind": memory_stays,
    "hooks leave stored transitions alone": replay_is_left_alone,
    "member of a fleet = alone": member_equals_alone,
    "swept options = alone": sweep_equals_alone,
    "resumed = uninterrupted": resumed_equals_uninterrupted,
    "neighbours of a diverged run are untouched": neighbours_are_untouched,
}


@dataclass(frozen=True)
class Verdict:
    check: str
    problem: str = ""  # empty: it holds
    checked: bool = True  # False: an earlier check's error came before there was anything to see


def run_checks(name: str) -> Iterator[Verdict]:
    """Check a method by name or `path/to/file.py:Class`, one verdict after another."""
    errors: set[str] = set()
    with opened(name) as kit:
        for title, check in CHECKS.items():
            problem, stopped = _problem(check, kit)
            # One error may count runs, which checks have different numbers of.
            cause = re.sub(r"\d+", "", problem.removeprefix("training failed: "))
            yield Verdict(title, problem, checked=not (stopped and cause in errors))
            errors |= {cause} if stopped else set()


@contextmanager
def opened(name: str) -> Iterator[Kit]:
    load_method(name)  # no check is to blame for an unknown name
    with tempfile.TemporaryDirectory() as folder, Pool(2) as pool:
        yield Kit(name, Path(folder), pool)


def _problem(check: Callable[[Kit], None], kit: Kit) -> tuple[str, bool]:
    """What a check found, and whether an error stopped it; empty if the method passes."""
    try:
        with redirect_stderr(StringIO()):  # training prints tracebacks; one line is enough here
            check(kit)
    except (Broken, UserError) as error:
        return str(error), isinstance(error, Stopped | UserError)
    except Exception as error:
        return where_it_failed(describe(error, [kit.method])), True
    return "", False


def check_method(name: str) -> None:
    """AssertionError that lists what does not hold; for the tests of your own methods."""
    found = [one for one in run_checks(name) if one.problem and one.checked]
    if problems := [f"{one.check}: {one.problem}" for one in found]:
        raise Broken("\n".join([f"{name} breaks the contract of methods", *problems]))

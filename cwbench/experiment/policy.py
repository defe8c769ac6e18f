"""Trained policies for Python users: load one from a run, act with it, evaluate it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbench import envs
from cwbench.experiment.execution import Execution, torch_set_up
from cwbench.experiment.objects import find_trained
from cwbench.experiment.runs import Run
from cwbench.experiment.trust import check_trust, edited_task, named_code
from cwbench.rollout.episodes import Envs, EvalJob, Evaluation
from cwbench.rollout.numpy_policy import Actor
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.actor_layout import ActorLayout, Floats
from cwbench.spec.errors import UserError, unknown
from cwbench.spec.options import as_index
from cwbench.spec.segment import Segment
from cwbench.spec.source import of_main
from cwbench.spec.tasks import Task
from cwbench.spec.text import shown
from cwbench.spec.version import __version__

if TYPE_CHECKING:
    from cwbench.learner.method import Method
    from cwbench.methods import Entry

    MethodClass: TypeAlias = type[Method[Any]]


TaskLike: TypeAlias = str | SupportsIndex | Task


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """The policy of a run for one task, at the end of some task of its sequence. Numpy only."""

    task: str
    position: int  # of the task in the run's sequence: which head acts
    segment: Segment  # after which the weights were saved
    layout: ActorLayout
    weights: Floats  # flat, as `layout` says
    rng: np.random.Generator

    def act(
        self,
        obs: ArrayLike,
        *,
        deterministic: bool = False,
        rng: np.random.Generator | None = None,
    ) -> Floats:
        """An action in [-1, 1] for an observation: [..., O] -> [..., A].

        Drawn from the policy with `rng` or its own generator; with `deterministic`, its mean.
        """
        actor = Actor(self.layout, self.weights)
        try:
            inputs = np.asarray(obs, np.float32)
        except (TypeError, ValueError):
            what = f"{shown(obs)} is not an observation"
            raise UserError(what, f"expected numbers, [..., {self.obs_dim}]") from None
        if inputs.ndim == 0 or inputs.shape[-1] != self.obs_dim:
            what = f"observation of shape {inputs.shape}"
            raise UserError(what, f"expected [..., {self.obs_dim}]")
        if not isinstance(rng, np.random.Generator | None):
            raise UserError(f"rng={shown(rng)}", "give numpy.random.default_rng(SEED)")
        shape = (*inputs.shape[:-1], self.action_dim)
        draw = np.zeros if deterministic else (rng or self.rng).standard_normal
        return actor.act(inputs, self.position, draw(shape, np.float32))

    def __repr__(self) -> str:
        learner = f"{self.segment.setup.method}, seed {self.segment.seed}"
        return f"<Policy of {learner}: {self.task} after {', '.join(self.segment.tasks)}>"

    @property
    def obs_dim(self) -> int:
        return envs.dims(self.segment.setup.env).obs

    @property
    def action_dim(self) -> int:
        return envs.dims(self.segment.setup.env).action


def load_policy(
    run: Run | str | Path,
    task: TaskLike | None = None,
    *,
    after: TaskLike | None = None,
    method: MethodClass | str | None = None,
    trust: bool = False,
) -> Policy:
    """The policy of a run for a task, at the end of task `after`, by default the last finished one.

    Tasks are names, positions or `Task`s; a name that occurs several times means the last of them.
    `method` is the class of a method that is neither installed nor known to the run, or
    `path/to/file.py:Class`; its code must be the one that trained the run. `trust=True` imports
    environments that the record names. `run` may also be the card of an exported policy
    (`cwbench export --to weights`).
    """
    if not isinstance(run, Run | str | Path):
        raise UserError(f"{shown(run)} is not a run", "give one of cwbench.load_runs, or a card")
    if not isinstance(run, Run):
        return read_card(Path(run), method, trust=trust)
    if not run.learned:
        raise UserError(f"run {run.run} has finished no task yet", "train it first")
    end = _position(run.tasks[: run.learned], after) if not run.joint else len(run.tasks) - 1
    position = _position(run.tasks[: end + 1], task)
    record = _record(run, 0 if run.joint else end)
    check_trust(named_code("", record["env"]), trust or run.trusted)
    method_class = _trained_here(run, record) if method is None else None
    if method_class is None:
        method_class = _method_class(record, method or run.methods.get(record["method"]))
    segment = _segment(record, method_class)
    with torch_set_up(Execution()):  # as in training: methods may compute weights
        layout, weights = _weights(run, segment, method_class, position)
    rng = np.random.default_rng(segment.seed)
    return Policy(run.tasks[position], position, segment, layout, weights, rng)


METHOD_HINT = "name it with --method FILE.py:CLASS (in Python: method=CLASS)"
# Of a layout; the rest is code, which a card never holds.
CARD_LAYOUT = ("shapes", "layers", "head_layers", "activation", "log_std", "log_std_range")


def card_of(policy: Policy) -> dict[str, Any]:
    """All of a policy but its weights, for a JSON file next to them."""
    segment, layout = policy.segment, policy.layout
    if layout.compute:
        raise UserError(
            f"policies of {segment.setup.method} cannot be exported as weights",
            "its actor needs code of its own; share the results folder instead",
        )
    return {
        "cwbench": __version__,
        "method": segment.setup.method,
        "task": policy.task,
        "position": policy.position,
        "layout": {name: getattr(layout, name) for name in CARD_LAYOUT},
        "segment": segment.record(),
    }


def read_card(
    file: Path, method: MethodClass | str | None = None, *, trust: bool = False
) -> Policy:
    """The policy of a card written by `cwbench export --to weights`."""
    from safetensors.numpy import load_file

    from cwbench.store.files import checked_name

    if not file.is_file():
        raise UserError(f"{file}: no such file", "give a card, the JSON file next to the weights")
    try:
        card = json.loads(file.read_text(encoding="utf-8"))
        shapes = {name: tuple(shape) for name, shape in card["layout"]["shapes"].items()}
        others: Any = {name: card["layout"][name] for name in CARD_LAYOUT[1:]}
        others["log_std_range"] = tuple(others["log_std_range"])
        record, name = card["segment"], checked_name(card["weights"], "file")
        check_trust(named_code("", record["env"]), trust)
        segment = _segment(record, _method_class(record, method))
        tensors = load_file(file.parent / name)
        flat = np.concatenate([tensors[name].ravel() for name in shapes])
        layout = ActorLayout(shapes, **others)
        rng = np.random.default_rng(segment.seed)
        return Policy(card["task"], card["position"], segment, layout, flat, rng)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{file}: not the card of a policy ({error!r:.80})") from None


def _position(tasks: tuple[str, ...], task: TaskLike | None) -> int:
    """The position that a task, its name, a position or None (the last) stands for."""
    if task is None:
        return len(tasks) - 1
    wanted = task.name if isinstance(task, Task) else task
    if isinstance(wanted, str):
        if wanted not in tasks:
            known = f"learned so far: {', '.join(dict.fromkeys(tasks))}"
            raise unknown("task", wanted, tasks, known)
        return max(position for position, name in enumerate(tasks) if name == wanted)
    if (position := as_index(wanted)) is None:
        raise UserError(f"{shown(wanted)} is not a task", "give its name or its position")
    if position not in range(len(tasks)):
        raise UserError(f"no task at position {position}", f"there are {len(tasks)}, from 0")
    return position


def _record(run: Run, index: int) -> dict[str, Any]:
    from cwbench.store.results import segment_record

    return segment_record(run.results, run.segment_folder(index) / "segment.json")


def _trained_here(run: Run, record: Mapping[str, Any]) -> MethodClass | None:
    """The class of a script or notebook that trained a run in this process.

    What it uses may have changed meanwhile, so its source is not compared.
    """
    found: MethodClass | None = run.methods.get(record["method"])
    return found if run.trusted and of_main(found) else None


def _method_class(
    record: Mapping[str, Any], method: MethodClass | str | tuple[MethodClass, ...] | None
) -> MethodClass:
    """The class of a record's method, the version that trained. UserError if it is not given."""
    name = record["method"]
    given = method if isinstance(method, tuple) else (method,)
    for one in given:
        found, entry, sources = _installed(name) if one is None else find_trained(one)
        if found == name and record["source"] in sources:
            return entry.method
    kept = f"sources/{record['source']}.py of its results folder"
    raise UserError(
        f"method {found!r} here is not the code of {name!r} that trained this",
        f"that is {kept if record['source'] else 'a built-in method'}",
    )


def _segment(record: Mapping[str, Any], method_class: MethodClass) -> Segment:
    """The segment of a record. UserError if a function that makes an environment has changed."""
    segment = Segment.from_record(record, method_class.config_class)
    if task := edited_task(record["env"], segment.setup.env):
        raise UserError(
            f"{task['callable']} here is not the code of task {task['name']!r} that trained this",
            "it and what it uses of its script or notebook must be as they were",
        )
    return segment


def _installed(name: str) -> tuple[str, Entry, set[str | None]]:
    """As `find_trained`, for a name of a record, which must not be a file to run."""
    from cwbench.methods import unusable

    with suppress(UserError):
        if ".py" not in name:
            return find_trained(name)
    raise UserError(unusable().get(name, f"method {name!r} is not installed"), METHOD_HINT)


def _weights(
    run: Run, segment: Segment, method_class: MethodClass, position: int
) -> tuple[ActorLayout, Floats]:
    """The weights that the method has evaluated for a position."""
    import torch

    from cwbench.learner.trainer import Trainer
    from cwbench.store import checkpoint
    from cwbench.store.results import Store

    file = Store(run.results).folder(segment).end
    if not file.exists():
        raise UserError(f"{file} is missing", "policies need the results folder with its weights")
    tensors, _ = checkpoint.load(file)
    trainer = Trainer.of_segments(
        [segment],
        dims=envs.dims(segment.setup.env),
        device=torch.device("cpu"),
        architecture=method_class.architecture_of(segment.setup.options),
    )
    trainer.load(checkpoint.under("trainer", tensors))
    method = method_class(segment.setup.options, trainer)
    method.load_state(checkpoint.under("method", tensors))
    layout = trainer.policy.layout(trainer.num_tasks)
    weights = method.evaluated_weights(position)
    flat = torch.cat([weights[name].flatten() for name in layout.shapes]).numpy()
    return layout, flat


@dataclass(frozen=True, eq=False)  # arrays have no one answer to ==
class EvaluationResult:
    """Outcome of evaluating a policy on a task; arrays have one entry per episode."""

    task: str
    scores: NDArray[np.float64]  # 0 to 1; 1 is success
    returns: NDArray[np.float64]

    @property
    def episodes(self) -> int:
        return len(self.scores)

    @property
    def success_rate(self) -> float:
        return float(self.scores.mean())

    @property
    def mean_return(self) -> float:
        return float(self.returns.mean())

    def __str__(self) -> str:
        return (
            f"{self.task}: success rate {self.success_rate:.2f}, "
            f"mean return {self.mean_return:.1f}, {self.episodes} episodes"
        )


def evaluate(
    policy: Policy,
    task: str | None = None,
    *,
    episodes: SupportsIndex = 10,
    seed: SupportsIndex | None = None,
) -> EvaluationResult:
    """Run stochastic episodes in this process.

    Without `seed` these are the episodes of the evaluation recorded at the segment's end: with the
    same number of episodes, the numbers are the recorded ones. `seed` gives other episodes.
    """
    if not isinstance(policy, Policy):
        raise UserError(f"{shown(policy)} is not a policy", "give what cwbench.load_policy returns")
    if (count := as_index(episodes)) is None or count < 1:
        raise UserError(f"episodes={shown(episodes)}", "at least one is needed")
    number = policy.segment.seed if seed is None else as_index(seed)
    if number is None or number < 0:
        raise UserError(f"seed={shown(seed)}", "give a whole number from 0 on")
    if task is not None and task not in (known := _tasks(policy)):
        suite = policy.segment.setup.env.suite
        every = ", ".join(dict.fromkeys(known)) if len(known) < 20 else "`cwbench tasks` lists them"
        raise unknown("task", str(task), known, f"this policy has the tasks of {suite}: {every}")
    weights = SharedArray((policy.layout.size,))
    weights.array[:] = policy.weights
    recorded = (policy.segment.position, policy.segment.steps, policy.position)
    job = EvalJob(
        seed=number,
        purpose="evaluate",
        rng_key=recorded if seed is None else (),
        task=task or policy.task,
        head=policy.position,
        episodes=count,
        layout=policy.layout,
        weights=weights.ref,
        row=0,
        env=policy.segment.setup.env,
    )
    try:
        evaluation = Evaluation(job, Envs(job.env))
        while evaluation.advance() is None:
            pass
    finally:
        weights.close()
    return EvaluationResult(job.task, np.array(evaluation.counted_scores, float), evaluation.totals)


def _tasks(policy: Policy) -> list[str]:
    """Tasks the policy can be evaluated on: those of its suite and of its run."""
    return [*policy.segment.setup.env.task_names, *policy.segment.tasks]

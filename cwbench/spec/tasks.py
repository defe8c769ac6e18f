"""Meta-World's tasks by name, and what defines a task of the gymnasium suite."""

import importlib
import json
import math
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import reduce
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from cwbench.spec.env_source import FromMain, named_source
from cwbench.spec.errors import CannotImport, UserError
from cwbench.spec.failure import in_called_code, where_it_failed
from cwbench.spec.options import of_python
from cwbench.spec.source import MAIN, of_main

# Continual World's ten; a task's id in the paper is its index here.
CW_TASKS = (
    "hammer",
    "push-wall",
    "faucet-close",
    "push-back",
    "stick-pull",
    "handle-press-side",
    "push",
    "shelf-place",
    "window-close",
    "peg-unplug-side",
)

# All fifty of Meta-World, Continual World's ten first.
METAWORLD_TASKS = (
    *CW_TASKS,
    *"""
    assembly basketball bin-picking box-close button-press-topdown button-press-topdown-wall
    button-press button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble
    door-close door-lock door-open door-unlock hand-insert drawer-close drawer-open faucet-open
    handle-press handle-pull-side handle-pull lever-pull peg-insert-side pick-place-wall
    pick-out-of-hole reach pick-place plate-slide plate-slide-side plate-slide-back
    plate-slide-back-side soccer stick-push reach-wall sweep-into sweep window-open
    """.split(),
)

LONGEST_EPISODE = 10**6  # steps


@dataclass(frozen=True)
class Score:
    """How an episode's score, 0 to 1, follows from its return, or from success in `info`."""

    return_from: float | None = None  # returns between these two become scores between 0 and 1
    return_to: float | None = None
    threshold: float | None = None  # returns of at least this score 1, others 0

    @staticmethod
    def parse(value: Any) -> "Score":
        """`"success"`, `{threshold = 300}` or `{return_from = 0, return_to = 6000}`."""
        if value == "success":
            return Score()
        keys = set(value) if isinstance(value, Mapping) else set()
        if keys not in ({"threshold"}, {"return_from", "return_to"}):
            raise UserError(
                f'score {value!r} is not a rule: write "success", {{ threshold = X }} '
                "or { return_from = X, return_to = Y }"
            )
        value = {key: of_python(bound) for key, bound in value.items()}
        for key, bound in value.items():
            if isinstance(bound, bool) or not isinstance(bound, Real):
                raise UserError(f"score: {key} = {bound!r} is not a number")
            if not math.isfinite(bound):
                raise UserError(f"score: {key} = {bound!r} is not finite")
        made = Score(**{key: float(bound) for key, bound in value.items()})
        low, high = made.return_from, made.return_to
        if low is not None and high is not None and low >= high:
            raise UserError(
                f"score: return_from = {low:g} is not below return_to = {high:g}",
                "the larger return is the better one",
            )
        return made

    def of(self, total: float, success: bool) -> float:
        """The score of an episode with this return."""
        if self.threshold is not None:
            return float(total >= self.threshold)
        if self.return_from is None or self.return_to is None:
            return float(success)
        share = (total - self.return_from) / (self.return_to - self.return_from)
        return min(max(share, 0.0), 1.0)

    def record(self) -> Any:
        return {key: value for key, value in asdict(self).items() if value is not None} or "success"


@dataclass(frozen=True)
class Task:
    """A task of the gymnasium suite: how its environment is made, and what its scores mean.

    `name`: letters, digits and . + - _.
    `env`: a registered id, "module:ID", or a function or class that makes the environment.
    `kwargs`: its arguments: plain numbers, text, lists and tables. They are copied.
    `wrappers`: innermost first, each "module:Class" or {"wrapper": ..., "kwargs": {...}}.
    `score`: "success" (from `info`), {"threshold": X} (returns of at least X score 1, others 0) or
    {"return_from": X, "return_to": Y} (returns from X to Y become scores from 0 to 1).
    `horizon`: steps per episode; None: the environment's own limit.

    The others are found out from the environment; leave them out.
    """

    name: str
    env: str | Callable[..., Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    wrappers: tuple[Any, ...] = field(default=(), hash=False)
    score: Any = field(default_factory=Score)  # a Score; other forms become one
    horizon: int | None = None
    obs_size: int = 0
    action_size: int = 0
    resume: str = ""  # "exact", or "episode": a continued run begins a new episode
    # Of the environment, in records. Kept: its file may be edited while runs of the task train.
    _code: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        valid_name(self.name, "a task's `name`")
        number = isinstance(self.horizon, Integral) and not isinstance(self.horizon, bool)
        if self.horizon is not None and (not number or self.horizon < 1):
            raise UserError(f"`horizon` must be a number of steps, found {self.horizon!r}")
        if (self.horizon or 0) > LONGEST_EPISODE:
            raise UserError(
                f"`horizon` is at most {LONGEST_EPISODE:,} steps, found {self.horizon!r}"
            )
        _check_plain(self.kwargs, self.wrappers)
        env = FromMain(self.env) if of_main(self.env) else self.env
        # UserError if results could not be told apart by it.
        code = {"id": env} if isinstance(env, str) else named_source(env)
        if not _is_named(env, code):
            raise UserError(
                f"task {self.name}: {code['callable']} does not name its `env`",
                "define it at the top level of its module; after a reload take it from there again",
            )
        # Copies: the caller may change theirs, and results would have the ids of earlier ones.
        made: dict[str, Any] = {
            "env": env,
            "_code": code,
            "kwargs": deepcopy(dict(self.kwargs)),
            "wrappers": deepcopy(tuple(self.wrappers)),
            "score": self.score if isinstance(self.score, Score) else Score.parse(self.score),
            "horizon": None if self.horizon is None else int(self.horizon),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **self._code,
            "kwargs": dict(self.kwargs),
            "wrappers": list(self.wrappers),
            "score": self.score.record(),
            "horizon": self.horizon,
            "obs_size": self.obs_size,
            "action_size": self.action_size,
            "resume": self.resume,
        }

    def check_unchanged(self) -> None:
        """UserError if its file has been edited: processes that import it now would train that."""
        try:
            same = isinstance(self.env, str) or named_source(self.env) == self._code
            same = same and _is_named(self.env, self._code)
        except (UserError, SyntaxError):  # the file no longer holds it, or is no Python
            same = False
        if not same:
            name = f"task {self.name}: {self._code['callable']}"
            hint = "reload the module or restart Python, and make the task again"
            raise UserError(f"{name} has changed since the task was made", hint)

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "Task":
        values = dict(record)
        env = imported(values.pop("callable")) if "callable" in values else values.pop("id")
        recorded = values.pop("source", None)
        env = FromMain(env, recorded) if of_main(env) else env
        rule = values["score"]  # of an older record its bounds may descend
        score = Score(**rule) if isinstance(rule, Mapping) else Score.parse(rule)
        values |= {"score": score, "wrappers": tuple(values["wrappers"])}
        return Task(env=env, **values)


def _is_named(env: Any, code: Mapping[str, str]) -> bool:
    """Whether workers, which get a function or class of a module by its name, and records find it.

    They do not find those that are defined inside a function, nor what a reload has replaced.
    """
    if isinstance(env, str | FromMain):
        return True
    try:
        return imported(code["callable"]) is env
    except CannotImport:
        return False


def valid_name(value: Any, what: str) -> str:
    """The name of a task or sequence; UserError if it holds other characters than names may."""
    if not isinstance(value, str) or not re.fullmatch(r"[\w.+-]+", value):
        raise UserError(f"{what} may hold letters, digits and . + - _ only, found {value!r}")
    return value


def _check_plain(kwargs: Any, wrappers: Any) -> None:
    """UserError if they cannot be recorded."""
    if not isinstance(kwargs, Mapping):
        raise UserError(f"`kwargs` must be a table, found {kwargs!r}")
    if not isinstance(wrappers, list | tuple):
        raise UserError(f"`wrappers` must be a list, found {wrappers!r}")
    for name, value in (("kwargs", dict(kwargs)), ("wrappers", wrappers)):
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"`{name}` must be plain numbers, text, lists and tables: {error}",
                "convert them in the function or class that takes them",
            ) from None


def where_to_find(name: str) -> str:
    """What helps where "module:name" needs a module that is not there."""
    file, named, inner = name.partition(".py:")
    if named:
        return f'write "{Path(file).name}:{inner}", and put the folder of {file}.py on PYTHONPATH'
    return "install the package that it needs, or put the folder of your own file on PYTHONPATH"


def imported(name: str) -> Any:
    """The object that "module:name" names."""
    module, colon, path = name.partition(":")
    if not colon or not path:
        raise UserError(f'{name!r} is not a name such as "package.module:Class"')
    try:
        return reduce(getattr, path.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        hint = "define it here again, or move it into a module and import it" * (module == MAIN)
        if isinstance(error, ModuleNotFoundError):
            hint = where_to_find(name)
        found = in_called_code(error)
        what = where_it_failed(found) if "file" in found else found["message"]
        raise CannotImport(f"cannot import {name!r}: {what}", hint) from None

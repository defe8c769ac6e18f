"""Mistakes in the declaration of a method that would be ignored or only show in training."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

import cwbench
from cwbench.cli.run import run
from cwbench.experiment.build import load_method
from cwbench.experiment.declaration import TAKEN, check_outside
from cwbench.learner import Method, MethodConfig, option
from cwbench.methods import METHODS
from cwbench.spec.errors import UserError
from cwbench.spec.options import flag_name


@dataclass(frozen=True)
class OwnConfig(MethodConfig):
    coef: float | None = option(None, "Strength.")
    rate: float = option(1, "A whole number is a number, too.")


@dataclass(frozen=True)
class SharedName(MethodConfig):
    lr: float = option(1.0, "Of SAC as well.")


@dataclass(frozen=True)
class WrongDefault(MethodConfig):
    coef: float = option("big", "Strength.")


@dataclass(frozen=True)
class NoHelp(MethodConfig):
    coef: float = 1.0


class Mode(Enum):
    FAST = 1


@dataclass(frozen=True)
class OfEnum(MethodConfig):
    mode: Mode | None = option(None, "No record holds it.")


@dataclass(frozen=True)
class OfEnumMembers(MethodConfig):
    mode: Literal[Mode.FAST] = option(Mode.FAST, "No record holds it.")


@dataclass(frozen=True)
class SeveralTypes(MethodConfig):
    mode: int | str = option(1, "No command knows which.")


@dataclass(frozen=True)
class Unresolved(MethodConfig):
    mode: "Nowhere" = option(1, "A type that only type checkers see.")  # type: ignore[name-defined] # noqa: F821


@dataclass(frozen=True)
class Twice(MethodConfig):
    coef: float = option(1.0, "Strength.")
    coef_: float = option(1.0, "Of the same flag.")


def named(name: str) -> type[MethodConfig]:
    """Options of which one has this name."""
    return make_dataclass(
        "Named", [(name, float, option(1.0, "Any."))], bases=(MethodConfig,), frozen=True
    )


def helper(*_: Any) -> None:
    """The body of a hook or of a method of its author's own."""


def made(bases: type = Method, **names: Any) -> type[Method[Any]]:
    return type("Mine", (bases,), names)


class Forgetful(Method[OwnConfig]):
    """Does not name its options."""


class Complete(Method[OwnConfig]):
    config_class = OwnConfig


class Helpers(Method[MethodConfig]):
    """Functions of its own that are named almost like hooks and attributes."""

    @property
    def expert(self) -> None:
        """Like `experts`, an attribute."""

    def reset(self) -> None:
        """Like `preset`, an attribute."""

    def sample_old_batch(self, size: int) -> Any:
        return self.trainer.replay.sample(size)

    def sample_batch(self, size: int) -> Any:
        return next(self.sample_old_batch(size) for _ in range(1))

    def on_task_done(self, position: int) -> None:
        """Called below."""

    def on_task_end(self, position: int) -> None:
        self.on_task_done(position)


class Unused(Method[MethodConfig]):
    def on_task_begin(self, position: int) -> None:
        super().on_task_begin(position)  # type: ignore[misc]


WRONG = {
    "nothing uses actor_penality of Mine; did you mean actor_penalty?": made(actor_penality=helper),
    "nothing uses on_task_begin of Mine; did you mean on_task_": made(on_task_begin=helper),
    "nothing uses on_task_begin of Unused; did you mean on_task_": Unused,
    "nothing uses config_clas of Mine; did you mean config_class?": made(config_clas=OwnConfig),
    "nothing uses intervall of Mine; did you mean interval?": made(intervall=100),
    "nothing uses keep_replay of Mine; did you mean keeps_replay?": made(keep_replay=True),
    "option lr of Mine has the name of another option": made(config_class=SharedName),
    "default of option coef of Mine: 'big' is not a number": made(config_class=WrongDefault),
    "option coef has no help": made(config_class=NoHelp),
    "option mode of Mine is of type Mode; use bool, int, float, str": made(config_class=OfEnum),
    "option mode of Mine is of type Literal": made(config_class=OfEnumMembers),
    "option mode of SeveralTypes has several types; declare one": made(config_class=SeveralTypes),
    "option of Unresolved: name 'Nowhere' is not defined": made(config_class=Unresolved),
    "option coef_ of Mine has the name of another option": made(config_class=Twice),
    "option lr_ of Mine has the name of another option": made(config_class=named("lr_")),
    "preset names speed, which is not an option": made(preset={"speed": 1}),
    "Mine does not use the options of OwnConfig; set config_class = OwnConfig": made(Forgetful),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_misdeclared_class_is_one_line(message: str) -> None:
    with pytest.raises(UserError) as error:
        check_outside("Mine", WRONG[message])
    assert message in str(error.value)
    with pytest.raises(cwbench.UserError):
        cwbench.plan(WRONG[message], ["reach-0-1"])


def test_an_option_cannot_have_a_name_that_a_command_or_call_has() -> None:
    """Whatever `cwbench run` and `plan` take; groups of options aside."""
    names = {param.name for param in run.params}
    names |= {flag.strip("-") for param in run.params for flag in param.opts}
    names |= {*inspect.signature(cwbench.plan).parameters} - {"options"}
    assert {flag_name(str(name)) for name in names} >= {*TAKEN} - {"help"}
    for flag in {*names, "help", "lag"}:
        name = str(flag).replace("-", "_")
        with pytest.raises(UserError, match=f"option {name} of Mine has the name of another"):
            check_outside("Mine", made(config_class=named(name)))


@pytest.mark.parametrize("name", ["states", "penalty", "task_of", "_on_task_begin", "update"])
def test_names_of_an_authors_own_are_not_mistaken_for_hooks(name: str) -> None:
    check_outside("Mine", made(Complete, **{name: helper}))


def test_attributes_of_an_authors_own_are_not_mistaken_for_settings() -> None:
    """Other words, functions, and what stands beside the setting it resembles."""
    words = ("internal", "configs", "budget", "width", "expertise", "replay", "states")
    values: dict[str, Any] = dict.fromkeys(words, 1)
    check_outside("Mine", made(**values, expert=helper, interval=5, intervals=(5, 6)))


def test_functions_that_the_class_itself_uses_are_not_mistaken_for_hooks() -> None:
    check_outside("Helpers", Helpers)


def test_options_other_than_those_of_the_base_may_be_set() -> None:
    check_outside("Mine", made(METHODS["ewc"].method, config_class=OwnConfig))


@pytest.mark.parametrize("name", ["finetuning", "pm"])
def test_a_class_with_the_name_of_a_built_in_method_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        f"from cwbench.learner import Method\n\nclass {name}(Method):\n    pass\n"
    )
    calls: list[Callable[[], Any]] = [
        lambda: load_method(f"{tmp_path}/own.py:{name}"),
        lambda: cwbench.plan(type(name, (Method,), {}), ["reach-0-1"]),
    ]
    for call in calls:
        with pytest.raises(UserError, match=f"class {name} has the name of a built-in method"):
            call()


@pytest.mark.parametrize("name", METHODS)
def test_every_built_in_method_is_declared_well(name: str) -> None:
    check_outside("Mine", METHODS[name].method)

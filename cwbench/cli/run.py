"""`cwbench run`: methods on sequences."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwbench import sequences
from cwbench.cli.completers import complete_sequence
from cwbench.cli.folders import PATH
from cwbench.cli.options import (
    GroupedCommand,
    Value,
    click_options,
    flags_of,
    methods_option,
    names_in,
    seeds_and_protocol,
    unknown_option,
)
from cwbench.cli.training_options import TrainingOptions, check_results, execute, training_options
from cwbench.experiment.build import (
    check_count,
    check_together,
    layers,
    load_method,
    parse_protocol,
    parse_seeds,
    parse_unshared,
    runs_of,
)
from cwbench.experiment.launching import USED_BY, check_used
from cwbench.spec import options
from cwbench.spec.config import GROUPS, PROTOCOLS, MethodConfig, option_groups
from cwbench.spec.errors import UserError, located

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cwbench.learner import Method
    from cwbench.methods import Entry
    from cwbench.planning.plan import Run


class MethodCommand(GroupedCommand):
    """A command whose options depend on --method, so that none is valid only sometimes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        command = copy(self)  # the next call may name another method
        args = [*_tuned_args(args), *args]
        names = names_in(_peek(args, "--method"))
        if names:
            protocol = _peek(args, "--protocol") or ["paper"]
            entries = [load_method(name)[1] for name in names]
            _check_names(args)
            _check_flags(command.params, names, args)
            given = _check_values(command.params, args)
            _check_launching(args)
            for results in _peek(args, "--results"):
                check_results(Path(results))
            if _are_built_in(names):  # a preset of another method may have any values
                _check_together(given, protocol[-1])
            command.params = [
                *command.params,
                *_method_options(entries, parse_protocol(protocol[-1])),
            ]
        elif {"--help", "-h"} & {*args}:
            command.epilog = (
                "`cwbench run --method NAME --help` also shows the options of that method, of SAC, "
                "networks, environment and schedule."
            )
        try:
            return click.Command.make_context(command, info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            if len(names) < 2:
                raise
            what = f"{error.option_name} is no option that all methods have"
            raise UserError(what, "name one --method to use its own options") from None


TITLES = {
    "sac": "SAC",
    "network": "Networks",
    "env": "Environment",
    "schedule": "Schedule",
    "suites": "Environment of other suites",
}


def _method_options(entries: Sequence[Entry], protocol: str) -> list[click.Option]:
    """Options of the method and of what all methods share, with the defaults that will hold.

    Several methods have only the shared ones.
    """
    entry, *others = entries
    groups = {} if others else {"Method": entry.method.config_class}
    groups |= {TITLES[name]: group for name, group in option_groups().items()}
    found = []
    for title, group in groups.items():
        values = asdict(options.resolve(group, *layers(entry, protocol, {})))
        found += click_options(group, values, group=title)
    return found


def _tuned_args(args: list[str]) -> list[str]:
    """The method and options of a --tuned file, to go before those that are given."""
    from cwbench.store import tuning

    found: list[str] = []
    given = names_in(_peek(args, "--method"))
    for text in _peek(args, "--tuned"):
        with located(text):
            record = tuning.read(Path(text))
        found += ["--method", _tuned_method(text, record["method"], given)]
        for name, value in record["options"].items():
            flag = options.flag_name(name)
            switch = [f"--{flag}"] if value else [f"--no-{flag}"]
            found += switch if isinstance(value, bool) else [f"--{flag}", str(value)]
    return found


def _tuned_method(file: str, name: str, given: Sequence[str]) -> str:
    """The method of a --tuned file as --method names it: a class in a file has to be given."""
    if others := [text for text in given if text.rpartition(":")[2] != name]:
        raise UserError(f"--tuned {file} was tuned for {name}, not for {others[0]}")
    if given:
        return given[0]
    advice = f"for a method of your own add --method FILE.py:{name}; give a class of a notebook"
    with located(f"--tuned {file}", f"{advice} and the file's `options` to cwbench.plan there"):
        load_method(name)
    return name


def _check_names(args: list[str]) -> None:
    """Answer a typo before a method's class is loaded, which takes seconds."""
    for text in _peek(args, "--seq"):
        sequences.expand(text)
    for text in _peek(args, "--seeds"):
        parse_seeds(text)
    for text in _peek(args, "--protocol"):
        parse_protocol(text)


def _check_flags(
    params: Sequence[click.Parameter], names: Sequence[str], args: Sequence[str]
) -> None:
    """Raise before torch is imported: for options that a built-in method does not have."""
    from cwbench.methods import declared_options

    if not _are_built_in(names):  # another method may have any option
        return
    declared, methods = declared_options(), [load_method(name)[0] for name in names]
    groups = (*option_groups().values(), MethodConfig)
    shared = flags_of(
        [
            *params,
            *(one for group in groups for one in click_options(group, group="")),
        ]
    )
    own = {name: _flags(found) for name, found in declared.items()}
    valid = [*shared, "--help", "--", *(own[methods[0]] if len(methods) == 1 else ())]
    for flag in [arg.partition("=")[0] for arg in args if arg.startswith("--")]:
        if flag not in valid:
            owners = [name for name, flags in own.items() if flag in flags]
            raise _unknown_flag(flag, valid, names, owners)


def _are_built_in(names: Sequence[str]) -> bool:
    from cwbench.methods import BASES

    return {load_method(name)[0] for name in names} <= BASES.keys()


def _flags(names: Iterable[str]) -> set[str]:
    return {f"--{no}{options.flag_name(name)}" for name in names for no in ("", "no-")}


def _unknown_flag(
    flag: str, valid: Sequence[str], names: Sequence[str], owners: Sequence[str]
) -> UserError:
    """A mistyped option, or one of other methods."""
    if owners and len(names) > 1:
        what = f"{flag} is no option that all methods have"
        return UserError(what, "name one --method to use its own options")
    command = f"cwbench run --method {names[0]}"
    if owners:
        what = f"{names[0]} has no option {flag}, which is one of {', '.join(owners)}"
        return UserError(what, f"`{command} --help` lists its own")
    return unknown_option(flag, valid, command)


def _check_values(params: Sequence[click.Parameter], args: list[str]) -> dict[str, Any]:
    """Raise before torch is imported: for bad values of options that all methods share.

    Returns those that were given.
    """
    given: dict[str, Any] = {}
    shared = [
        one for name, group in option_groups().items() for one in click_options(group, group=name)
    ]
    for option in (*params, *shared):
        if isinstance(option.type, Value):
            for text in _peek(args, option.opts[0]):
                given[option.type.field] = option.type.convert(text, option, None)
    return given


def _check_together(given: Mapping[str, Any], protocol: str) -> None:
    """Raise before torch is imported: for values that do not go with each other or a protocol's."""
    values = (given, PROTOCOLS[protocol])
    check_together(**{name: options.resolve(group, *values) for name, group in GROUPS.items()})


def _check_launching(args: list[str]) -> None:
    """Raise before torch is imported: for options of another launcher."""
    given = [name for name in USED_BY if _peek(args, f"--{options.flag_name(name)}")]
    check_used((_peek(args, "--launcher") or ["local"])[-1], given)


def _peek(args: list[str], flag: str) -> list[str]:
    """The values of an option, in order, before they are parsed."""
    return [
        value if arg == flag else arg.partition("=")[2]
        for arg, value in zip_longest(args, args[1:])
        if (arg == flag and value is not None) or arg.startswith(f"{flag}=")
    ]


@training_options
@click.command(cls=MethodCommand)
@methods_option(
    required=True,
    help="A method that `cwbench methods` lists, path/to/file.py:ClassName, or several joined by "
    "commas. May be given several times.",
)
@click.option(
    "--seq", "sequence", required=True, multiple=True, shell_complete=complete_sequence,
    help="A sequence that `cwbench sequences` lists, 'cw3-*', tasks a,b,c or file.toml. May be "
    "given several times.",
)  # fmt: skip
@seeds_and_protocol
@click.option(
    "--unshared", metavar="NETWORKS", help="actor, critic or actor,critic: one network per task."
)
@click.option(
    "--tuned", type=PATH, metavar="FILE",
    help="Method and options that `cwbench tune` chose. Reports mark where they were chosen.",
)  # fmt: skip
@click.pass_context
def run(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    sequence: tuple[str, ...],
    seeds: str,
    protocol: str,
    unshared: str | None,
    tuned: Path | None,
    **given: Any,
) -> None:
    """Train methods on sequences. The same command again continues where it stopped."""
    training = TrainingOptions.take(given)
    parse_protocol(protocol)
    wanted = [one for text in sequence for one in sequences.expand(text)]
    wanted = list(dict.fromkeys(wanted))
    numbers, alone = parse_seeds(seeds), parse_unshared(unshared)
    check_count(len(names) * len(wanted) * len(numbers))
    experiments: dict[str, list[Run]] = {}
    methods: dict[str, type[Method[Any]]] = {}
    for name in names:
        method, entry = load_method(name)
        methods[method] = entry.method
        runs = runs_of(
            name, method, entry, protocol, given, wanted=wanted, seeds=numbers, unshared=alone
        )
        title = f"{runs[0].label} on {', '.join(one.name for one in wanted)}"
        experiments.setdefault(title, []).extend(runs)
    if not execute(
        experiments, methods, training, also_record=partial(_keep, tuned, training.results)
    ):
        ctx.exit(1)


def _keep(tuned: Path | None, results: Path) -> None:
    """For reports of the folder: where the options come from."""
    if tuned is not None:
        from cwbench.store import tuning

        tuning.write(results, tuning.read(tuned))

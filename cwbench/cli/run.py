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
    label_name,
    layers,
    load_method,
    one_by_one,
    parse_seeds,
    parse_unshared,
    runs_of,
)
from cwbench.experiment.launching import USED_BY, check_used
from cwbench.spec import options
from cwbench.spec.config import GROUPS, MethodConfig, option_groups
from cwbench.spec.errors import UserError, located
from cwbench.spec.protocol import parse_protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cwbench.learner import Method
    from cwbench.methods import Entry
    from cwbench.planning.plan import Run
    from cwbench.spec.protocol import Protocol


class MethodCommand(GroupedCommand):
    """A command whose options depend on --method, so that none is valid only sometimes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        command = copy(self)  # the next call may name another method
        args = [*_tuned_args(args), *args]
        names = names_in(_peek(args, "--method"))
        if names:
            entries = [load_method(name)[1] for name in names]
            lenient = extra.get("resilient_parsing") or not {"--help", "-h"}.isdisjoint(args)
            protocol = _check_early(command.params, names, args, lenient=lenient)
            command.params = [*command.params, *_method_options(entries, protocol)]
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


def _method_options(entries: Sequence[Entry], protocol: Protocol) -> list[click.Option]:
    """Options of the method and of what all methods share, with the defaults that will hold.

    Several methods have only the shared ones.
    """
    entry, *others = entries
    groups: dict[str, type] = {"Method": MethodConfig if others else entry.method.config_class}
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
        tuned = record.get("variant", record["method"])
        found += ["--method", _tuned_method(text, tuned, given)]
        for name, value in record["options"].items():
            flag = options.flag_name(name)
            switch = [f"--{flag}"] if value else [f"--no-{flag}"]
            found += switch if isinstance(value, bool) else [f"--{flag}", str(value)]
    return found


def _tuned_method(file: str, name: str, given: Sequence[str]) -> str:
    """The method of a --tuned file as --method names it: a class in a file has to be given."""
    if others := [text for text in given if label_name(text) != name]:
        raise UserError(f"--tuned {file} was tuned for {name}, not for {others[0]}")
    if given:
        return given[0]
    advice = f"for a method of your own add --method FILE.py:{name}; give a class of a notebook"
    with located(f"--tuned {file}", f"{advice} and the file's `options` to cwbench.plan there"):
        load_method(name)
    return name


def _check_early(
    params: Sequence[click.Parameter],
    names: Sequence[str],
    args: Sequence[str],
    *,
    lenient: bool,
) -> Protocol:
    """Raise before torch is imported, which takes seconds: for options that no method has.

    And, unless lenient, for bad values of those that all methods share. Returns the protocol.
    """
    groups = option_groups()
    shared = [one for group in groups.values() for one in click_options(group, group="")]
    # What it does not know may be a method's own.
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    known = click.Command("run", settings, params=[*params, *shared], add_help_option=False)
    seen = known.make_context("run", [*args], resilient_parsing=lenient)
    protocol = parse_protocol(seen.params["protocol"])
    built_in = _are_built_in(names)  # another method may have any option, and its preset any value
    if built_in:
        _check_flags(
            [arg for arg in seen.args if arg.startswith("--")], flags_of(known.params), names
        )
    if not lenient:
        for text in seen.params["sequence"]:
            sequences.expand(text)
        parse_seeds(seen.params["seeds"])
        check_results(seen.params["results"])
        given = [name for name in USED_BY if seen.params[name]]
        check_used(seen.params["launcher"] or "local", given)
        if built_in:
            values = one_by_one((seen.params, protocol.options))
            check_together(**{key: options.resolve(one, *values) for key, one in GROUPS.items()})
    return protocol


def _check_flags(unknown: Sequence[str], shared: Sequence[str], names: Sequence[str]) -> None:
    """Raise for options that a built-in method does not have."""
    from cwbench.methods import declared_options

    methods = {load_method(name)[0] for name in names}
    own = {name: _flags(found) for name, found in declared_options().items()}
    valid = [*shared, *flags_of(click_options(MethodConfig, group="")), "--help", "--"]
    if len(names) == 1:
        valid += own[methods.pop()]
    for flag in (arg.partition("=")[0] for arg in unknown):
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
    asked = parse_protocol(protocol)
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
            name, method, entry, asked, given, wanted=wanted, seeds=numbers, unshared=alone
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

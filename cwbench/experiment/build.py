"""Names and options become objects: methods, setups, runs."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import click

from cwbench import sequences
from cwbench.spec import options
from cwbench.spec.config import GROUPS, PROTOCOLS, NetworkConfig


def parse_protocol(name: str) -> str:
    if name not in PROTOCOLS:
        hint = sequences.closest(name, PROTOCOLS)
        raise click.UsageError(f"unknown protocol {name!r}{hint} Known: {', '.join(PROTOCOLS)}")
    return name


def parse_seeds(text: str) -> list[int]:
    """`3`, `0-4`, `0,2,5-7` -> numbers, each once."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.BadParameter(f"{text!r} is not a list of seeds such as 3, 0-4 or 0,2,5-7")
        seeds += range(int(first), int(last or first) + 1)
    if not seeds:
        raise click.BadParameter(f"{text!r} names no seed: the range runs backwards")
    return list(dict.fromkeys(seeds))


def parse_unshared(text: str | None) -> list[str]:
    """`none`, `actor`, `critic` or `actor,critic` -> networks of which each task has its own."""
    names = [part.strip() for part in text.split(",")] if text not in (None, "none") else []
    if unknown := set(names) - {"actor", "critic"}:
        raise click.BadParameter(
            f"--unshared {text}: {min(unknown)!r} is neither actor nor critic; "
            "write actor, critic or actor,critic"
        )
    return names


def with_unshared(
    names: Sequence[str], entry: Any, protocol: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The given options, with all hidden layers of these networks in the tasks' heads."""
    order = layers(entry, protocol, given)
    count = options.resolve(NetworkConfig, *order).layers
    result = dict(given)
    for name in names:
        field = f"{name}_head_layers"
        if given.get(field) not in (None, count):
            flag = options.flag_name(field)
            raise click.UsageError(f"--unshared {name} means --{flag} {count}; give only one")
        result[field] = count
    return result


def load_method(name: str) -> tuple[str, Any]:
    from cwbench import methods

    try:
        return methods.load(name)
    except KeyError:
        known = methods.known()
        hint = sequences.closest(name, known)
        raise click.UsageError(
            f"unknown method {name!r}{hint} `cwbench methods` lists all {len(known)}"
        ) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def layers(entry: Any, protocol: str, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Where values come from, first wins: command line, protocol, variant, method's preset."""
    return (given, PROTOCOLS[protocol], entry.options, entry.method.preset)


def make_setup(method: str, entry: Any, protocol: str, given: Mapping[str, Any]) -> Any:
    from cwbench.spec.segment import Setup

    order = layers(entry, protocol, given)
    groups: dict[str, Any] = {
        name: options.resolve(group, *order) for name, group in GROUPS.items()
    }
    network = groups["network"]
    for name in ("actor_head_layers", "critic_head_layers"):
        if getattr(network, name) > network.layers:
            raise click.UsageError(f"--{name.replace('_', '-')} is larger than --layers")
    own = options.resolve(entry.method.config_class, *order)
    return Setup(method, own, source=entry.source, **groups)


def make_runs(
    entry: Any, label: str, setup: Any, protocol: str, sequence: Any, seeds: Sequence[int]
) -> list[Any]:
    from cwbench.planning.plan import Run
    from cwbench.spec.segment import path

    kind = entry.method
    return [
        Run(
            sequence.name,
            sequence.tasks,
            label,
            protocol,
            tuple(
                path(
                    setup,
                    seed,
                    sequence.tasks,
                    needs_length=kind.needs_length,
                    joint=kind.trains_jointly,
                )
            ),
        )
        for seed in seeds
    ]


def make_label(
    name: str,
    entry: Any,
    protocol: str,
    given: Mapping[str, Any],
    unshared: Sequence[str] = (),
    swept: Sequence[str] = (),
) -> str:
    """The method's name and what was changed: options of its own, swept ones, --unshared."""
    changed = []
    for group in (entry.method.config_class, *GROUPS.values()):
        usual = options.resolve(group, *layers(entry, protocol, {}))
        for key in (field.name for field in fields(group)):
            named = group is entry.method.config_class or key in swept
            if named and given.get(key) not in (None, getattr(usual, key)):
                changed.append(f"{options.flag_name(key)}={given[key]}")
    changed += [f"unshared {' and '.join(sorted(unshared))}"] if unshared else []
    name = label_name(name)
    return f"{name} ({', '.join(changed)})" if changed else name


def label_name(name: str) -> str:
    """What a method is called: not by an alias, nor by the path of its file."""
    from cwbench.methods import ALIASES

    return ALIASES.get(name, name.rpartition(":")[2])

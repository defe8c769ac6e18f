"""Names and options become objects: methods, setups, runs. No torch until a method is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cwbench import sequences
from cwbench.experiment.declaration import check_outside
from cwbench.experiment.objects import find_method
from cwbench.spec import options
from cwbench.spec.config import (
    ENV_CONFIGS,
    GROUPS,
    EnvConfig,
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
    option_groups,
)
from cwbench.spec.errors import UserError, unknown
from cwbench.spec.protocol import ProtocolLike, parse_protocol
from cwbench.spec.schedule import count_updates
from cwbench.spec.segment import Setup
from cwbench.spec.text import as_command

if TYPE_CHECKING:
    from cwbench.learner.method import Method
    from cwbench.methods import Entry
    from cwbench.planning.plan import Run

    Methods: TypeAlias = Mapping[str, type[Method[Any]]]  # by the name they are recorded under

HEAD_LAYERS = ("actor_head_layers", "critic_head_layers")
SIZES = ("width", "layers")  # which `hidden` sets, too
LARGEST_SEED = 2**31 - 1
MOST_NUMBERS = 10_000  # seeds in one command
MOST_RUNS = 100_000  # in one command


def parse_numbers(text: str, what: str, largest: int) -> list[int]:
    """`3`, `0-4`, `0,2,5-7` -> numbers. Each may be named once."""
    numbers: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise UserError(f"{text!r} is not a list of {what}s", "write 3, 0-4 or 0,2,5-7")
        low, high = int(first), int(last or first)
        if low > high:
            raise UserError(f"{part.strip()!r} names no {what}: the range runs backwards")
        if high > largest:
            raise UserError(f"{what} {high} is too large", f"{what}s run from 0 to {largest:,}")
        if high - low >= MOST_NUMBERS:
            raise UserError(f"{part.strip()!r} is {high - low + 1:,} {what}s",
                            f"one command takes at most {MOST_NUMBERS:,}")  # fmt: skip
        for number in range(low, high + 1):
            if number in numbers:
                raise UserError(f"{text!r} names {what} {number} twice", "name each once")
            numbers[number] = None
    return list(numbers)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 1000


def parse_seeds(text: str) -> list[int]:
    return parse_numbers(text, "seed", LARGEST_SEED)


def parse_unshared(text: str | None) -> list[str]:
    """`none`, `actor`, `critic` or `actor,critic` -> networks of which each task has its own."""
    names = [part.strip() for part in text.split(",")] if text not in (None, "none") else []
    if wrong := set(names) - {"actor", "critic"}:
        raise UserError(
            f"--unshared {text}: {min(wrong)!r} is neither actor nor critic",
            "write actor, critic or actor,critic",
        )
    return list(dict.fromkeys(names))


def with_unshared(
    names: Sequence[str], entry: Entry, protocol: ProtocolLike, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The given options, with all hidden layers of these networks in the tasks' heads."""
    count = options.resolve(NetworkConfig, *layers(entry, protocol, given)).layers
    result = dict(given)
    for name in names:
        field = f"{name}_head_layers"
        if given.get(field) not in (None, count):
            flag = options.flag_name(field)
            raise UserError(f"--unshared {name} means --{flag} {count}", "give only one")
        result[field] = count
    return result


def load_method(method: str | type[Method[Any]]) -> tuple[str, Entry]:
    """The name it is recorded under, and the method. UserError if its class is misdeclared."""
    _, recorded, entry = find_method(method)
    check_declared(recorded, entry)
    return recorded, entry


def check_declared(recorded: str, entry: Entry) -> None:
    """UserError if a method from outside the package is misdeclared."""
    if entry.source is not None:
        check_outside(recorded, entry.method)


def layers(
    entry: Entry, protocol: ProtocolLike, given: Mapping[str, Any]
) -> tuple[Mapping[str, Any], ...]:
    """Where values come from, first wins: the user, protocol, variant, method's preset."""
    every = given, parse_protocol(protocol).options, entry.options, entry.method.preset
    return one_by_one(every)


def one_by_one(order: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The same where `hidden` of a source does not beat width and layers of those before it."""
    found: list[Mapping[str, Any]] = []
    for source in order:
        sized = any(one.get(name) is not None for one in found for name in SIZES)
        if sized and source.get("hidden") is not None:
            network = NetworkConfig(hidden=source["hidden"])
            source = {**source, "hidden": None, "width": network.width, "layers": network.layers}
        found.append(source)
    return tuple(found)


def option_homes(entry: Entry) -> dict[str, tuple[type, str]]:
    """Every option a method takes, by its flag: the class that declares it and the field's name."""
    groups = (entry.method.config_class, *option_groups().values())
    return {options.flag_name(f.name): (group, f.name) for group in groups for f in fields(group)}


def find_option(name: str, method: str, entry: Entry, *, as_flag: bool = False) -> tuple[type, str]:
    """The class and field of an option, by flag or field name; suggests fields, or flags."""
    homes, flag = option_homes(entry), options.flag_name(str(name))
    if flag not in homes:
        known = homes if as_flag else [field for _, field in homes.values()]
        error = unknown("option", str(name), known, _where_listed(method, entry))
        raise UserError(f"{method} has no option {name!r}", error.hint)
    return homes[flag]


def find_options(names: Iterable[str], method: str, entry: Entry) -> dict[str, tuple[type, str]]:
    """As `find_option`, for each name. UserError if two mean the same option."""
    found: dict[str, tuple[type, str]] = {}
    for name in names:
        home = find_option(name, method, entry)
        if home in found.values():
            raise UserError(f"option {home[1]!r} is given twice", "give it once")
        found[name] = home
    return found


def _where_listed(method: str, entry: Entry) -> str:
    """How to see a method's options; the command line does not find a class given in Python."""
    from cwbench.methods import known

    if entry.source is None or ".py:" in method or method in known():
        return f"{as_command('run', '--method', method, '--help')} lists all"
    own = options.field_names(entry.method.config_class) - options.field_names(MethodConfig)
    listed = f"its own are {', '.join(sorted(own))}; " if own else "it has none of its own; "
    return f"{listed}`cwbench run --method finetuning --help` lists the others"


def make_setup(
    method: str,
    entry: Entry,
    protocol: ProtocolLike,
    given: Mapping[str, Any],
    sequence: sequences.Sequence | None = None,
) -> Setup:
    """The options of a run, checked. `given` has field names; None means not given.

    The sequence decides the suite of environments; without one it is Meta-World.
    """
    for name in given:
        find_option(name, method, entry)
    own = entry.method.config_class
    checked = options.check_all(given, own, *option_groups().values())
    order = layers(entry, protocol, checked)
    groups: dict[str, Any] = {
        name: options.resolve(group, *order) for name, group in GROUPS.items()
    }
    groups["network"] = make_network(entry, protocol, checked)
    if given.get("hidden") and (given.get("width") or given.get("layers")):
        raise UserError("--hidden already sets --width and --layers", "leave those out")
    check_together(**groups)
    if sequence is not None:
        groups["env"] = make_env(sequence, order)
    chosen = options.resolve(own, *order)
    # The last evaluation of earlier tasks is taken over while an expert learns: fleet/experts.py.
    if entry.method.experts and "actor" in chosen.reset.split(","):
        raise UserError(
            f"--reset actor: {method} keeps its actor for finished tasks, experts learn new ones",
            "leave actor out",
        )
    chosen = fit_reset(method, entry, chosen, given)
    return Setup(method, chosen, source=entry.source, **groups)


def make_env(sequence: sequences.Sequence, order: Sequence[Mapping[str, Any]]) -> EnvConfig:
    """The options of the environments of a sequence; those of another suite must not be given."""
    from cwbench import envs

    config_class, given = ENV_CONFIGS[sequence.suite], order[0]
    known = {field.name for field in fields(config_class) if "help" in field.metadata}
    groups = option_groups()
    for name in options.field_names(groups["env"], groups["suites"]) - known:
        if given.get(name) is not None:
            raise UserError(
                f"--{options.flag_name(name)} is not an option of {sequence.suite} environments",
                f"leave it out for the sequence {sequence.name}",
            )
    return envs.configure(options.resolve(config_class, *order), sequence.definitions)


def make_network(entry: Entry, protocol: ProtocolLike, given: Mapping[str, Any]) -> NetworkConfig:
    """The networks of a run, with a method's own depth of heads fitted to theirs."""
    network = options.resolve(NetworkConfig, *layers(entry, protocol, given))
    usual = options.resolve(NetworkConfig, entry.options, entry.method.preset)
    asked = {key: value for key, value in given.items() if value is not None}
    return fit_heads(network, {**parse_protocol(protocol).options, **asked}, usual)


def fit_heads(
    network: NetworkConfig, given: Mapping[str, Any], usual: NetworkConfig
) -> NetworkConfig:
    """A method's own depth of heads, where the network is less deep, leaves one layer shared."""
    most = network.layers - 1
    # In a network as deep as its own, a method may mean all layers to be in heads.
    allowed = most if network.layers < usual.layers else network.layers
    fitted: dict[str, Any] = {
        name: most
        for name in HEAD_LAYERS
        if given.get(name) is None and getattr(network, name) > allowed
    }
    return replace(network, **fitted)


def fit_reset(
    method: str, entry: Entry, config: MethodConfig, given: Mapping[str, Any]
) -> MethodConfig:
    """Without the critic, if the method needs its old one: a protocol's reset is for the others."""
    parts = config.reset.split(",")
    if "critic" not in parts or not entry.method.keeps_critic_with(config):
        return config
    if given.get("reset") is not None:
        raise UserError(
            f"--reset critic: {method} learns earlier tasks with its critic and keeps it",
            "leave critic out",
        )
    return replace(config, reset=",".join(part for part in parts if part != "critic") or "none")


def check_together(
    network: NetworkConfig, sac: SACConfig, schedule: ScheduleConfig, env: MetaWorldConfig
) -> None:
    """Checks that involve several options."""
    for name in HEAD_LAYERS:
        if (depth := getattr(network, name)) > network.layers:
            raise UserError(
                f"--{options.flag_name(name)} {depth} is larger than --layers {network.layers}",
                "give a smaller number",
            )
    if sac.buffer_size < sac.batch_size:
        raise UserError(f"--buffer-size {sac.buffer_size} is smaller than a batch",
                        f"give at least --batch-size {sac.batch_size}")  # fmt: skip
    if not count_updates(schedule, schedule.steps_per_task):
        raise UserError(
            f"--update-after {schedule.update_after} with --update-every {schedule.update_every} "
            f"leaves no update in a task of {schedule.steps_per_task} steps",
            "give smaller numbers",
        )
    if env.push_back_shaping and env.reward != "cw_v1":
        raise UserError(f"--push-back-shaping has no effect with --reward {env.reward}",
                        "leave it out or give --reward cw_v1")  # fmt: skip
    if not env.hammer_nail and env.obs != "cw12":
        raise UserError(f"--no-hammer-nail has no effect with --obs {env.obs}",
                        "leave it out or give --obs cw12")  # fmt: skip


def check_joint(
    method: str, entry: Entry, schedule: ScheduleConfig, sequence: sequences.Sequence
) -> None:
    """Evaluations of a method that trains all tasks at once must fall where others' do."""
    steps, every = schedule.steps_per_task, schedule.eval_every
    joint = entry.method.trains_jointly and len(sequence.tasks) > 1
    if joint and steps % every:
        raise UserError(
            f"{method} trains all tasks at once: --steps-per-task {steps} is no multiple of "
            f"--eval-every {every}", "give one that is"
        )  # fmt: skip


def runs_of(
    name: str,
    method: str,
    entry: Entry,
    protocol: ProtocolLike,
    given: Mapping[str, Any],
    *,
    wanted: Sequence[sequences.Sequence],
    seeds: Sequence[int],
    unshared: Sequence[str] = (),
    swept: Sequence[str] = (),
) -> list[Run]:
    """From options to runs, all with one label: `name` as it was given, recorded as `method`."""
    protocol = parse_protocol(protocol)
    chosen = with_unshared(unshared, entry, protocol, given)
    setups = [make_setup(method, entry, protocol, chosen, one) for one in wanted]  # checks options
    label = make_label(name, entry, protocol, given, unshared, swept)
    runs = []
    for one, setup in zip(wanted, setups, strict=True):
        check_joint(method, entry, setup.schedule, one)
        runs += [make_run(entry, label, setup, protocol.name, one, seed) for seed in seeds]
    return runs


def make_run(
    entry: Entry,
    label: str,
    setup: Setup,
    protocol: str,
    sequence: sequences.Sequence,
    seed: int,
) -> Run:
    from cwbench.planning.plan import Run

    segments = entry.method.segments_of_run(setup, seed, sequence.tasks)
    return Run(sequence.name, sequence.tasks, label, protocol, tuple(segments))


def check_count(runs: int) -> None:
    """Stop before building millions of runs takes minutes and all memory."""
    if runs > MOST_RUNS:
        raise UserError(f"{runs:,} runs are too many", f"one command takes at most {MOST_RUNS:,}")


def make_label(
    name: str,
    entry: Entry,
    protocol: ProtocolLike,
    given: Mapping[str, Any],
    unshared: Sequence[str] = (),
    swept: Sequence[str] = (),
) -> str:
    """The method's name and what was changed of its own options, SAC's and the networks'.

    Options of environment and schedule are named where they are swept: reports keep their settings
    apart as protocols.
    """
    changed = []
    own = entry.method.config_class
    for group in (own, *option_groups().values()):
        for key, value in _changes(group, given, entry, protocol).items():
            if group in (own, SACConfig, NetworkConfig) or key in swept:
                changed.append(f"{options.flag_name(key)}={value}")
    changed += [f"unshared {' and '.join(sorted(unshared))}"] if unshared else []
    name = label_name(name)
    return f"{name} ({', '.join(changed)})" if changed else name


def _changes(
    group: type, given: Mapping[str, Any], entry: Entry, protocol: ProtocolLike
) -> dict[str, Any]:
    """What makes a difference, in the form that records have: 1 and 1.0 are one label.

    `--hidden 256,256,256,256` makes none, `--hidden 64,64` is a width, and a depth of heads makes
    none where the network would be fitted to it anyway.
    """
    names = [field.name for field in fields(group)]
    asked = {
        key: options.checked(group, key, given[key]) for key in names if given.get(key) is not None
    }
    now: Any = options.resolve(group, *layers(entry, protocol, asked))
    before: Any = options.resolve(group, *layers(entry, protocol, {}))
    found = [key for key in names if getattr(now, key) != getattr(before, key)]
    if "hidden" in found:
        shown = ("hidden",) if now.hidden else SIZES
        others = {*found} - {"hidden", *SIZES}
        found = [key for key in names if key in others or key in shown]
    for key in {*HEAD_LAYERS}.intersection(found, asked):
        without = make_network(entry, protocol, {**asked, key: None})
        if make_network(entry, protocol, asked) == without:
            found.remove(key)
    return {key: getattr(now, key) for key in found}


def label_name(name: str) -> str:
    """A method's name: neither an alias nor the path of its file."""
    from cwbench.methods import ALIASES

    return ALIASES.get(name, name.rpartition(":")[2])

"""Which options of a setting are not its method's defaults."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from cwbench.methods import VARIANTS
from cwbench.reports.analysis import names
from cwbench.reports.analysis.reference import HEADS, preset_of
from cwbench.reports.analysis.study import Group, Study
from cwbench.spec.config import PROTOCOLS, NetworkConfig, SACConfig
from cwbench.spec.options import completed, flag_name, resolve

UNSHARED = {part: flag_name(f"{part}_head_layers") for part in ("actor", "critic")}


def changed(study: Study, group: Group) -> frozenset[str]:
    """Options that were changed, by their flags, and the name of a variant: none by default.

    Its label names them, those of SAC and the networks only in results of newer versions: these
    are compared with what its protocol, its variant and its method give.
    """
    name, named = _in_label(group)
    return frozenset([*named, *shared_changes(study, group, name)])


def _in_label(group: Group) -> tuple[str, list[str]]:
    """The method's or variant's name, and what the label says was changed."""
    name, bracket, text = group.label.partition(" (")
    found = [name] if names.method_key(name) != names.method_key(group.method) else []
    for part in text.removesuffix(")").split(", ") if bracket else ():
        unshared = part.removeprefix("unshared ")
        if unshared != part:
            found += [UNSHARED.get(one, one) for one in unshared.split(" and ")]
        else:
            found.append(part.partition("=")[0])
    return name, found


def shared_changes(study: Study, group: Group, name: str) -> dict[str, Any]:
    """Options of SAC and networks with other values than the defaults, by their flags."""
    record = study.record(group)
    variant: Mapping[str, Any] = VARIANTS[name].options if name in VARIANTS else {}
    usual = (PROTOCOLS.get(group.protocol.name, {}), variant, preset_of(record, group.method))
    network, found = resolve(NetworkConfig, *usual), {}
    # In a network that is less deep than a method's own, one layer stays shared.
    heads = {key: min(getattr(network, key), network.layers - 1) for key in HEADS}
    for kind, default in (("sac", resolve(SACConfig, *usual)), ("network", network)):
        values = completed(type(default), record[kind]) if record.get(kind) else {}
        for key in (one.name for one in fields(default) if one.name in values):
            if values[key] != heads.get(key, getattr(default, key)):
                found[flag_name(key)] = values[key]
    if "hidden" in found:
        found = {flag: value for flag, value in found.items() if flag not in ("width", "layers")}
    return found


def full_title(study: Study, group: Group) -> str:
    """The title, with the changed options that its label does not name."""
    name, named = _in_label(group)
    found = shared_changes(study, group, name).items()
    rest = [f"{flag}={value}" for flag, value in found if flag not in named]
    return group.title + (f" with {', '.join(rest)}" if rest else "")

"""The registry of methods: a name, its class, and options a named variant sets."""

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from cwbench.learner import Method
from cwbench.methods.agem import AGEM
from cwbench.methods.clonex import ClonEx
from cwbench.methods.ewc import EWC
from cwbench.methods.finetuning import FineTuning
from cwbench.methods.l2 import L2
from cwbench.methods.mas import MAS
from cwbench.methods.multitask import Multitask
from cwbench.methods.packnet import PackNet
from cwbench.methods.perfect_memory import PerfectMemory
from cwbench.methods.recall import Recall
from cwbench.spec.errors import UserError, unknown

__all__ = ["METHODS", "Entry", "known", "load"]


@dataclass(frozen=True)
class Entry:
    """A method under a name; `options` are the values that make it a variant."""

    method: type[Method[Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    base: str | None = None  # the method a variant is recorded as: equal options, equal segments
    source: str | None = None  # hash of the file, for methods from outside the package

    @property
    def summary(self) -> str:
        return (self.method.__doc__ or "").strip().split("\n")[0]


METHODS: dict[str, Entry] = {
    "finetuning": Entry(FineTuning),
    "ewc": Entry(EWC),
    "packnet": Entry(PackNet),
    "clonex": Entry(ClonEx),
    # As re-implemented in RECALL's release, without its mistakes.
    "clonex-rr": Entry(
        ClonEx,
        {
            "kl_direction": "new_old",
            "kl_reduce": "mean",
            "exploration": "copy_best_head",
            "halve_gradient": False,
        },
        base="clonex",
    ),
    "perfect-memory": Entry(PerfectMemory),
    "recall": Entry(Recall),
    # The ablations of its paper: TN is target normalisation, PD policy distillation.
    "recall-none": Entry(Recall, {"popart": False, "distill": False}, base="recall"),
    "recall-tn": Entry(Recall, {"distill": False}, base="recall"),
    "recall-pd": Entry(Recall, {"popart": False}, base="recall"),
    # The release's command for pairs of tasks.
    "recall-pairs": Entry(
        Recall,
        {"lambda_": 0.01, "critic_head_layers": 0, "best_return": False},
        base="recall",
    ),
    # Everything the release does differently from its paper and that is a switch here.
    "recall-release": Entry(
        Recall,
        {"old_weight": "num_old", "popart_stats": "normalized", "distill_memory": "10000"},
        base="recall",
    ),
    "l2": Entry(L2),
    "mas": Entry(MAS),
    "agem": Entry(AGEM),
    "multitask": Entry(Multitask),
}

ALIASES: dict[str, str] = {"pm": "perfect-memory"}


def known() -> dict[str, Entry]:
    """The built-in methods and those that installed packages offer as `cwbench.methods`."""
    found = dict(METHODS)
    for point in entry_points(group="cwbench.methods"):
        found.setdefault(point.name, _outside(point.load()))
    return found


def load(name: str) -> tuple[str, Entry]:
    """The name to record and the method, by name, alias or `path/to/file.py:ClassName`."""
    if name.endswith(".py"):
        raise UserError(f"method {name}: which class of it?", f"write {name}:ClassName")
    if ".py:" in name:
        path, _, class_name = name.rpartition(":")
        return class_name, _from_file(Path(path), class_name)
    name = ALIASES.get(name, name)
    # Other packages are looked for only when needed.
    entry = METHODS.get(name) or known().get(name)
    if entry is None:
        raise unknown("method", name, known(), f"`cwbench methods` lists all {len(known())}")
    return entry.base or name, entry


def _from_file(path: Path, class_name: str) -> Entry:
    if not path.is_file():
        raise UserError(f"method file {path}: no such file")
    spec = importlib.util.spec_from_file_location(f"cwbench_method_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"method file {path}: {type(error).__name__}: {error}") from error
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise UserError(f"method file {path}: {class_name!r} is not a class derived from Method")
    return _outside(found, path)


def _outside(method: type[Method[Any]], path: Path | None = None) -> Entry:
    """A method of someone else's: its file's content is part of what its results mean."""
    if path is None:
        spec = importlib.util.find_spec(method.__module__)
        path = Path(spec.origin) if spec and spec.origin else None
    content = path.read_bytes() if path else b""
    return Entry(method, source=hashlib.sha256(content).hexdigest()[:12])

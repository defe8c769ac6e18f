"""The registry of methods: a name, its class, what readers see, options of named variants.

Importing it does not import torch; a method's file is imported when its class is asked for.
"""

import importlib.util
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.abc import SourceLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from cwbench.spec.errors import UserError, unknown
from cwbench.spec.source import changed_files, check_unchanged, file_source, short_hash

if TYPE_CHECKING:
    from cwbench.learner import Method

__all__ = ["FAMILIES", "METHODS", "Entry", "declared_options", "find", "known", "load", "unusable"]

FAMILIES = {
    "baseline": "Baseline",
    "control": "Controls",
    "regularisation": "Regularisation",
    "parameters": "Parameter isolation",
    "replay": "Replay and cloning",
    "plasticity": "Plasticity",
    "distillation": "Distillation",
    "bound": "Upper bound",
    "yours": "From other packages",
}


@dataclass(frozen=True)
class Entry:
    """A method under a name: its class, or where in this folder that is, and what readers see.

    The order of the registry is the order of tables, and a method's index in it decides its colour.
    """

    target: "str | type[Method[Any]]"  # `file:Class`, so that reports read titles without torch
    title: str = ""
    family: str = "yours"
    options: Mapping[str, Any] = field(default_factory=dict)  # what makes it a variant
    base: str | None = None  # the method a variant is recorded as: equal options, equal segments
    source: str | None = None  # hash of the file, for methods from outside the package

    @cached_property
    def method(self) -> "type[Method[Any]]":
        if not isinstance(self.target, str):
            return self.target
        file, _, name = self.target.partition(":")
        found: type[Method[Any]] = getattr(import_module(f"cwbench.methods.{file}"), name)
        return found

    @property
    def summary(self) -> str:
        return (self.method.__doc__ or "").strip().split("\n")[0]


def _variant(base: str, **options: Any) -> Entry:
    """A named variant: its method with other options."""
    entry = BASES[base]
    return Entry(entry.target, entry.title, entry.family, options, base)


BASES: dict[str, Entry] = {
    "finetuning": Entry("finetuning:FineTuning", "Fine-tuning", "baseline"),
    "ewc": Entry("ewc:EWC", "EWC", "regularisation"),
    "packnet": Entry("packnet:PackNet", "PackNet", "parameters"),
    "clonex": Entry("clonex:ClonEx", "ClonEx", "replay"),
    "perfect-memory": Entry("perfect_memory:PerfectMemory", "PM", "replay"),
    "recall": Entry("recall:Recall", "RECALL", "replay"),
    "agem": Entry("agem:AGEM", "A-GEM", "replay"),
    "l2": Entry("l2:L2", "L2", "regularisation"),
    "mas": Entry("mas:MAS", "MAS", "regularisation"),
    "multitask": Entry("multitask:Multitask", "Multi-task", "bound"),
    "independent": Entry("independent:Independent", "Independent", "control"),
    "finetuning-n": Entry("finetuning_n:FineTuningN", "Fine-tuning-N", "control"),
    "er": Entry("er:ER", "ER", "replay"),
    "l2-init": Entry("l2_init:L2Init", "L2-init", "plasticity"),
    "shrink-perturb": Entry("shrink_perturb:ShrinkPerturb", "S&P", "plasticity"),
    "parseval": Entry("parseval:Parseval", "Parseval", "plasticity"),
    "continual-backprop": Entry("continual_backprop:ContinualBackprop", "CBP", "plasticity"),
    "redo": Entry("redo:ReDo", "ReDo", "plasticity"),
    "reset-distill": Entry("reset_distill:ResetDistill", "R&D", "distillation"),
    "progress-compress": Entry("progress_compress:ProgressCompress", "P&C", "distillation"),
    "vcl": Entry("vcl:VCL", "VCL", "regularisation"),
    "cka-rl": Entry("cka_rl:CKARL", "CKA-RL", "parameters"),
    "csp": Entry("csp:CSP", "CSP", "parameters"),
    "prognet": Entry("prognet:ProgNet", "ProgNet", "parameters"),
    "componet": Entry("componet:CompoNet", "CompoNet", "parameters"),
}
VARIANTS: dict[str, Entry] = {
    # As re-implemented in RECALL's release, without its mistakes.
    "clonex-rr": _variant(
        "clonex",
        kl_direction="new_old",
        kl_reduce="mean",
        exploration="copy_best_head",
        halve_gradient=False,
    ),
    # The ablations of its paper: TN is target normalisation, PD policy distillation.
    "recall-none": _variant("recall", popart=False, distill=False),
    "recall-tn": _variant("recall", distill=False),
    "recall-pd": _variant("recall", popart=False),
    # The release's command for pairs of tasks.
    "recall-pairs": _variant("recall", lambda_=0.01, critic_head_layers=0, best_return=False),
    # What the release composes on Meta-World, with the pool of its launcher.
    "cka-rl-release": _variant("cka-rl", scope="heads", pool=20, reset="critic"),
    # Continual backpropagation as CKA-RL's table has it, and Parseval with its release's settings.
    "continual-backprop-cka": _variant(
        "continual-backprop",
        replacement_rate=1e-3,
        maturity=1000,
        every=1,
        networks="actor",
        first_only=True,
        reset="critic",
    ),
    "parseval-release": _variant("parseval", scale=2.0, input_layer=True),
    # Everything the release does differently from its paper and that is a switch here.
    "recall-release": _variant(
        "recall", old_weight="num_old", popart_stats="normalized", distill_states=10_000
    ),
}
METHODS: dict[str, Entry] = BASES | VARIANTS

ALIASES: dict[str, str] = {"pm": "perfect-memory"}

# `class NAMEConfig(BASEConfig)` of the method NAME, with everything indented below it.
CONFIG = re.compile(
    r"^class (?P<name>\w+)Config\((?P<base>\w+)Config\):\n(?P<body>( {4}.*\n|\n)*)", re.M
)


def known() -> dict[str, Entry]:
    """The built-in methods and those that installed packages offer as `cwbench.methods`."""
    return METHODS | _offered()[0]


def unusable() -> dict[str, str]:
    """Names that installed packages offer as methods but that cannot be used, and why."""
    return _offered()[1]


def _offered() -> tuple[dict[str, Entry], dict[str, str]]:
    found: dict[str, Entry] = {}
    problems = {}
    for point in entry_points(group="cwbench.methods"):
        package = f"package {point.dist.name}" if point.dist else "a package"
        try:
            if point.name in {*METHODS, *ALIASES, *found}:
                raise UserError("another method has this name")
            found[point.name] = _outside(_as_method(point.load()))
        except Exception as error:  # of code that is not ours; other methods can still be used
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            reason = " ".join(f"{kind}{error}".split())
            problems[point.name] = f"method {point.name!r} of {package} cannot be used: {reason}"
    return found, problems


def _as_method(found: Any) -> "type[Method[Any]]":
    from cwbench.learner import Method

    if not (isinstance(found, type) and issubclass(found, Method)):
        raise UserError(f"{found!r:.60} is not a class derived from Method")
    return found


def declared_options() -> dict[str, set[str]]:
    """Names of each built-in method's options, from the source: importing it takes seconds."""
    texts = [file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.py")]
    configs = {one["name"]: one for text in texts for one in CONFIG.finditer(text)}
    targets = {name: str(entry.target) for name, entry in BASES.items()}
    return {
        name: _options_of(target.partition(":")[2], configs) for name, target in targets.items()
    }


def _options_of(name: str, configs: Mapping[str, re.Match[str]]) -> set[str]:
    """Options of a config and of those that it derives from."""
    if name not in configs:
        return set()
    own = re.findall(r"^    (\w+): .* = option\(", configs[name]["body"], re.M)
    return {*own} | _options_of(configs[name]["base"], configs)


def load(name: str) -> tuple[str, Entry]:
    """As `find`, for training; UserError if a file has been edited since it was imported."""
    recorded, entry = find(name)
    if entry.source:
        check_unchanged(entry.method)
    return recorded, entry


def find(name: str) -> tuple[str, Entry]:
    """The name to record and the method, by name, alias or `path/to/file.py:ClassName`."""
    if name.endswith(".py"):
        raise UserError(f"method {name} names no class", f"write {name}:ClassName")
    if ".py:" in name:
        path, _, class_name = name.rpartition(":")
        return class_name, _from_file(Path(path), class_name)
    name = ALIASES.get(name, name)
    # Other packages are looked for only when needed.
    entry = METHODS.get(name) or (others := known()).get(name)
    if entry is None:
        if problem := unusable().get(name):
            raise UserError(problem)
        raise unknown("method", name, others, f"`cwbench methods` lists all {len(others)}")
    return entry.base or name, entry


# Of a file that results keep.
KEPT_HINT = (
    "of a notebook or script the code is kept for reading: define the class there again, and give "
    "it as method=CLASS in Python"
)


class _Executed(NamedTuple):
    """A method's file that was executed."""

    module: ModuleType
    text: bytes
    specs: Mapping[str, Any]  # of all modules then; reloading one gives it another

    def is_current(self, text: bytes) -> bool:
        now, classes = _specs(), _methods_of(self.module).values()
        same = text == self.text and all(now.get(name) is one for name, one in self.specs.items())
        return same and not any(path for one in classes for path in changed_files(one))


PREFIX = "cwbench_method_"  # of the names of such modules
_executed: dict[str, _Executed] = {}


def _module_of(path: Path) -> ModuleType:
    """A method's file as a module; executed again if it was edited or a module was reloaded."""
    if not path.is_file():
        raise UserError(f"method file {path}: no such file")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"method file {path}: {type(error).__name__}: {error}") from error
    # Files of one name in two folders are two modules.
    name = f"{PREFIX}{path.stem}_{short_hash(str(path.resolve()).encode())}"
    known = _executed.pop(name, None)
    if not (known and known.is_current(text)):
        module = _execute(path, name, text)
        known = _Executed(module, text, _specs())
    _executed[name] = known
    return known.module


def _specs() -> dict[str, Any]:
    found = [(name, one) for name, one in [*sys.modules.items()] if not name.startswith(PREFIX)]
    return {name: getattr(module, "__spec__", None) for name, module in found}


def _execute(path: Path, name: str, text: bytes) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and isinstance(spec.loader, SourceLoader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        # Not from Python's cache, which misses an edit of equal size within a second.
        exec(spec.loader.source_to_code(text, str(spec.origin)), vars(module))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == spec.origin]
        where = f"{path} line {lines[-1]}" if lines else path
        kept = isinstance(error, SyntaxError) and path.parent.name == "sources"
        hint = KEPT_HINT if kept else ""
        raise UserError(f"method file {where}: {type(error).__name__}: {error}", hint) from error
    return module


def _from_file(path: Path, class_name: str) -> Entry:
    module = _module_of(path)
    classes = _methods_of(module)
    if class_name not in classes:
        own = [name for name, found in classes.items() if found.__module__ == module.__name__]
        hint = f"it has {', '.join(own)}" if own else ""
        raise UserError(
            f"method file {path}: {class_name!r} is not a class derived from Method", hint
        )
    found = classes[class_name]
    if found.__module__.startswith("cwbench."):
        raise UserError(
            f"method file {path}: {class_name} is a method of cwbench",
            "give its name; `cwbench methods` lists all",
        )
    return _outside(found)


def _methods_of(module: ModuleType) -> "dict[str, type[Method[Any]]]":
    from cwbench.learner import Method

    found = vars(module).items()
    return {k: v for k, v in found if isinstance(v, type) and issubclass(v, Method)}


def _outside(method: "type[Method[Any]]") -> Entry:
    """A user's method: its file's content is part of what its results mean."""
    return Entry(method, source=short_hash(file_source(method)))

"""Who may import whom, that every module has its test, and that everything is packaged.

ALLOWED is the picture of the house: each folder and the folders below it that it may import.
"""

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = ("methods", "sequences", "reports")  # folders next to cwbench/ that import as cwbench.X
BELOW_FLEET = {"planning", "rollout", "learner", "store", "envs", "spec"}
BELOW_EXPERIMENT = BELOW_FLEET | {"fleet", "launch", "methods", "sequences", "reports"}

# folder -> folders it may import, apart from itself
ALLOWED = {
    "spec": set(),
    "learner": {"spec"},
    "envs": {"spec"},
    "store": {"spec"},
    "sequences": {"spec"},
    "rollout": {"envs", "spec"},
    "methods": {"learner", "spec"},
    "planning": {"rollout", "learner", "store", "envs", "spec"},
    "fleet": {"planning", "rollout", "learner", "store", "spec"},
    "launch": {"planning", "store", "spec"},
    "bench": BELOW_FLEET | {"fleet"},
    "reports": {"methods", "store", "spec"},
    "experiment": BELOW_EXPERIMENT,
    "sharing": {"experiment", "store", "envs", "spec"},
    "cli": BELOW_EXPERIMENT - {"rollout"} | {"bench", "experiment", "sharing"},
}
# The same inside reports/; build.py may import all of them.
REPORTS = {
    "analysis": set(),
    "tables": {"analysis"},
    "figures": {"analysis", "tables"},
    "page": {"analysis", "tables"},
    "board": {"analysis", "tables"},
}
# package -> folders that may import it
ONLY_IN = {
    "torch": {
        "learner",
        "methods",
        "planning",
        "fleet",
        "bench",
        "experiment",
        "cli",
        "store",
        "sharing",
    },
    "metaworld": {"envs"},
    "mujoco": {"envs"},
    "click": {"cli"},
    "pandas": {"store", "reports", "experiment", "sharing"},
    "matplotlib": {"reports", "bench"},
}


def sources() -> list[Path]:
    files = [file for folder in ("cwbench", *TOP) for file in (ROOT / folder).rglob("*.py")]
    # The links inside cwbench/ lead to the same files again.
    return sorted({file.resolve() for file in files})


def module(file: Path) -> str:
    """The dotted name under which a file is imported."""
    parts = list(file.relative_to(ROOT).with_suffix("").parts)
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(["cwbench", *parts] if parts[0] in TOP else parts)


MODULES = {module(file): file for file in sources()}


@cache
def imports(file: Path) -> set[str]:
    """Every module that a file imports, at its top, in functions and for type checking alike."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & MODULES.keys()) or {node.module}
    return names


def folder(name: str) -> str:
    """The folder that a module of ours belongs to; empty for the package's own face."""
    return [*name.split("."), ""][1]


def targets(name: str) -> set[str]:
    """The other folders that a module imports from."""
    ours = (other for other in imports(MODULES[name]) if other.startswith("cwbench."))
    return {folder(other) for other in ours} - {folder(name)}


def targets_in_reports(name: str) -> set[str]:
    """The same inside reports/."""
    ours = (other for other in imports(MODULES[name]) if other.startswith("cwbench.reports."))
    return {other.split(".")[2] for other in ours} - {name.split(".")[2]}


@pytest.mark.parametrize("name", [name for name in MODULES if folder(name) in ALLOWED])
def test_imports_point_downwards(name: str) -> None:
    assert targets(name) <= ALLOWED[folder(name)]


IN_REPORTS = [name for name in MODULES if name.split(".")[1:3] in [["reports", x] for x in REPORTS]]


@pytest.mark.parametrize("name", IN_REPORTS)
def test_imports_inside_reports_point_downwards(name: str) -> None:
    assert targets_in_reports(name) <= REPORTS[name.split(".")[2]]


def test_every_allowed_import_is_made() -> None:
    """A folder that is not used is no part of the picture."""
    made: dict[str, set[str]] = {home: set() for home in ALLOWED}
    for name in MODULES:
        made.get(folder(name), set()).update(targets(name))
    inside: dict[str, set[str]] = {home: set() for home in REPORTS}
    for name in IN_REPORTS:
        inside[name.split(".")[2]] |= targets_in_reports(name)
    assert (made, inside) == (ALLOWED, REPORTS)


# All but the registry, methods/__init__.py.
METHOD_FILES = sorted([*(ROOT / "methods").glob("[!_]*.py"), *(ROOT / "methods").glob("_[!_]*.py"),
                       *(ROOT / "examples").glob("*.py")])  # fmt: skip


@pytest.mark.parametrize("file", METHOD_FILES, ids=lambda file: file.name)
def test_methods_import_what_authors_are_offered(file: Path) -> None:
    """`cwbench.learner` itself, none of its modules; and other methods."""
    ours = {name for name in imports(file) if name.split(".")[0] == "cwbench"}
    assert not [name for name in ours if folder(name) != "methods" and name != "cwbench.learner"]


@pytest.mark.parametrize("name", MODULES)
def test_packages_are_imported_where_they_belong(name: str) -> None:
    used = {other.split(".")[0] for other in imports(MODULES[name])}
    wrong = {package for package in used & ONLY_IN.keys() if folder(name) not in ONLY_IN[package]}
    assert not wrong


def test_no_module_imports_itself_through_others() -> None:
    """No circles, those for type checking included."""
    below = {name: imports(file) & MODULES.keys() for name, file in MODULES.items()}
    while leaves := [name for name, others in below.items() if not others - {name}]:
        for name in leaves:
            del below[name]
        below = {name: others & below.keys() for name, others in below.items()}
    assert not below


# Modules of this many lines or more have a test of the same path.
TESTED_FROM = 60
UNTESTED = {
    "cwbench/rollout/messages.py": "plain data; the pool and its workers exchange all of it",
}


def mirror(file: Path) -> Path:
    """`cwbench/learner/rng.py` -> `tests/learner/test_rng.py`; of a package, its folder's name."""
    folders = file.relative_to(ROOT).parts[:-1]
    name = folders[-1] if file.stem == "__init__" else file.stem.lstrip("_")
    inner = folders[1:] if folders[0] == "cwbench" else folders
    return ROOT.joinpath("tests", *inner, f"test_{name}.py")


def test_tests_mirror_modules() -> None:
    long = [f for f in MODULES.values() if len(f.read_text().splitlines()) >= TESTED_FROM]
    lacking = {str(f.relative_to(ROOT)) for f in long if not mirror(f).is_file()}
    assert lacking == UNTESTED.keys()


def test_every_folder_is_packaged() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0] for name in MODULES
    }
    assert folders == set(config["packages"])


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("cwbench", ("torch", "numpy", "pandas", "click")),
        ("cwbench.cli", ("torch", "numpy", "metaworld")),
        ("cwbench.spec.segment", ("torch", "metaworld", "click")),
        ("cwbench.store.results", ("torch", "metaworld", "pandas")),
        ("cwbench.store.runs", ("torch", "metaworld")),
        ("cwbench.methods", ("torch", "numpy")),
        ("cwbench.reports", ("torch", "metaworld", "matplotlib")),
        ("cwbench.rollout.worker", ("torch", "pandas", "metaworld")),
    ],
)
def test_light_imports(module: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([m for m in {absent!r} if m in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"

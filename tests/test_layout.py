"""Who may import whom, and that everything is packaged."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("cwbench", "methods", "sequences", "reports")

# folder or file -> modules it may not import
FORBIDDEN = {
    "cwbench": {"cwbench.methods", "cwbench.sequences", "cwbench.reports", "click", "matplotlib"},
    "methods": {
        "cwbench.runner",
        "cwbench.workers",
        "cwbench.rollouts",
        "cwbench.results",
        "cwbench.fleet",
        "cwbench.cli",
    },
    "sequences": {"torch", "metaworld", "mujoco", "numpy", "pandas", "cwbench.config"},
    "reports": {"torch", "metaworld", "mujoco", "click", "cwbench.methods", "cwbench.trainer"},
}
ALLOWED = {
    "cwbench/cli": {"cwbench.methods", "cwbench.sequences", "cwbench.reports", "click"},
    "cwbench/options.py": {"click"},
}
ONLY_IN = {
    "metaworld": "cwbench/envs",
    "mujoco": "cwbench/envs",
    "pandas": ("cwbench/results.py", "reports"),
}


def sources() -> list[Path]:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    # The links inside cwbench/ lead to the same files again.
    return sorted({file.resolve() for file in files})


def imports(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def under(name: str, modules: set[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


@pytest.mark.parametrize("file", sources(), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_follow_the_map(file: Path) -> None:
    place = file.relative_to(ROOT).as_posix()
    banned = set(FORBIDDEN[place.split("/")[0]])
    for start, names in ALLOWED.items():
        if place.startswith(start):
            banned -= names
    assert not {name for name in imports(file) if under(name, banned)}
    for module, home in ONLY_IN.items():
        if not place.startswith(home):
            assert not {name for name in imports(file) if under(name, {module})}, module


def test_every_folder_is_packaged() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {file.parent.relative_to(ROOT).as_posix().replace("/", ".") for file in sources()}
    top = {"methods", "sequences", "reports"}
    packages = {f"cwbench.{f}" if f.split(".")[0] in top else f for f in folders}
    assert packages == set(config["packages"])


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("cwbench.cli", ("torch", "numpy", "metaworld")),
        ("cwbench.results", ("torch", "metaworld")),
        ("cwbench.reports", ("torch", "metaworld", "matplotlib")),
        ("cwbench.workers", ("torch", "pandas", "metaworld")),
    ],
)
def test_light_imports(module: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([m for m in {absent!r} if m in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"

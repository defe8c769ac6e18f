"""Commands that list and show: sequences, tasks, methods, doctor."""

import importlib.util
import os
import platform
import shutil
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cwbench.spec.options import flag_name
from cwbench.spec.version import __version__

if TYPE_CHECKING:
    from cwbench.methods import Entry


def show(rows: Sequence[tuple[str, ...]], *columns: str) -> None:
    """A table that is plain text when it goes to a file."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    width = None if Console().is_terminal else 160
    Console(width=width).print(table)


@click.command()
def sequences() -> None:
    """List the named sequences, and the other ways to name one."""
    from cwbench.sequences import CW_TASKS, get, names

    found = [get(name) for name in names()]
    rows = [(one.name, one.summary or " ".join(one.tasks), one.source) for one in found]
    rows += [
        ("orders-cw10-K", "cw10 in a random order, the same for everyone; K is any number", ""),
        ("pair-I-J", f"tasks I and J, ids 0 to {len(CW_TASKS) - 1} (`cwbench tasks`)", ""),
        ("single-TASK", "one task alone", ""),
        ("cw3-*", "every named sequence like this: also cw6-*, pair-5-*, single-*", ""),
        ("a,b,c", "any tasks, in this order", ""),
        ("file.toml", "a sequence file: docs/sequences.md", ""),
    ]
    show(rows, "sequence", "tasks", "from")


@click.command()
def tasks() -> None:
    """List the tasks by suite; Continual World's ten have the ids that `pair-I-J` refers to."""
    from cwbench.sequences import OTHER_TASKS
    from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS

    ids = {task: str(number) for number, task in enumerate(CW_TASKS)}
    rows = [(ids.get(task, ""), task, "metaworld") for task in METAWORLD_TASKS]
    rows += [("", task, sequence.suite) for task, sequence in OTHER_TASKS.items()]
    show(rows, "id", "task", "suite")


@click.command()
@click.option("--names", is_flag=True, help="Only the names, one per line.")
def methods(names: bool) -> None:
    """List the methods by family; `cwbench run --method NAME --help` shows one's options."""
    from cwbench.methods import ALIASES, FAMILIES, known

    entries = known()
    if names:
        for name in entries:
            click.echo(name)
        return
    also = {target: f" ({alias})" for alias, target in ALIASES.items()}
    rows = [
        (title, name + also.get(name, ""), _described(entry))
        for family, title in FAMILIES.items()
        for name, entry in entries.items()
        if entry.family == family
    ]
    show(_once(rows), "family", "method", "what it does")


def _described(entry: "Entry") -> str:
    changed = ", ".join(f"{flag_name(key)}={value}" for key, value in entry.options.items())
    return f"{entry.base} with {changed}" if entry.base else entry.summary


def _once(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first cell only where it changes."""
    firsts = ["", *(row[0] for row in rows)]
    return [
        ("" if row[0] == before else row[0], *row[1:])
        for row, before in zip(rows, firsts, strict=False)
    ]


@click.command()
def doctor() -> None:
    """Show versions and hardware, what is missing, and how to get it."""
    from cwbench.planning.estimate import cores

    rows = [("cwbench", __version__, ""), ("python", platform.python_version(), "")]
    needed = {"torch": "2.6", "metaworld": "3.1.1", "mujoco": "3.3.0", "numpy": "2"}
    rows += [
        (name, *_package(name, exact=name in ("metaworld", "mujoco"), wanted=needed))
        for name in (*needed, "scipy", "pandas", "matplotlib", "click", "rich", "safetensors")
    ]
    rows.append(("cores", str(cores()), platform.machine()))
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        rows.append(("memory", f"{memory / 2**30:.0f} GiB", ""))
    rows.append(("GPU", *_gpu()))
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    hint = "" if compiler else "optional: compiled updates need one, e.g. the package g++"
    rows.append(("C++ compiler", "found" if compiler else "none", hint))
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    rows.append(
        ("browser", "found" if browser else "none", "" if browser else "optional: for tests")
    )
    tex = shutil.which("pdflatex") or shutil.which("tectonic")
    rows.append(
        ("TeX", "found" if tex else "none", "" if tex else "optional: to typeset report.tex")
    )
    show(rows, "what", "found", "note")


def _package(name: str, *, exact: bool, wanted: dict[str, str]) -> tuple[str, str]:
    if importlib.util.find_spec(name) is None:
        return "missing", f"pip install {name}{'==' if exact else '>='}{wanted.get(name, '0')}"
    version = metadata.version(name)
    if exact and version != wanted[name]:
        return version, f"results need {wanted[name]}: pip install {name}=={wanted[name]}"
    return version, ""


def _gpu() -> tuple[str, str]:
    import torch

    if not torch.cuda.is_available():
        built = "a CUDA build of torch is needed" if torch.version.cuda is None else "no device"
        return "none", f"optional: {built}"
    free, total = torch.cuda.mem_get_info()
    name = torch.cuda.get_device_name()
    return name, f"CUDA {torch.version.cuda}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free"

"""`cwbench doctor`: what is missing on this machine, or damaged in a results folder."""

import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path

import click

from cwbench.cli.console import json_option, show
from cwbench.cli.folders import PATH, existing, results_folder
from cwbench.experiment.results_folder import check_version
from cwbench.spec.extras import is_installed
from cwbench.spec.text import as_command, counted
from cwbench.spec.version import __version__


@click.command()
@click.argument("results", required=False, type=PATH)
@json_option
@click.pass_context
def doctor(ctx: click.Context, results: Path | None, as_json: bool) -> None:
    """Show versions and hardware, what is missing, and how to get it.

    With RESULTS: list the files of a results folder that are missing or cannot be read. `cwbench
    verify RESULTS` compares every file with its checksum.
    """
    if results is None:
        examine_machine(as_json)
    elif list_damages(existing(results), as_json, full=False):
        ctx.exit(1)


def examine_machine(as_json: bool) -> None:
    from cwbench.planning.machine import cores

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
    rows.append(("C++ compiler", *_compiler()))
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    rows.append(
        ("browser", "found" if browser else "none", "" if browser else "optional: for tests")
    )
    tex = shutil.which("pdflatex") or shutil.which("tectonic")
    rows.append(
        ("TeX", "found" if tex else "none", "" if tex else "optional: to typeset report.tex")
    )
    show(rows, "what", "found", "note", as_json=as_json)


def list_damages(results: Path, as_json: bool, *, full: bool) -> int:
    """Show what is damaged in a results folder; how much."""
    from cwbench.store.integrity import damages, full_check, is_movable, quick_check

    check_version(results_folder(results))
    found = list(damages(results, full_check if full else quick_check))
    rows = [(one.file, one.reason, one.segment) for one in found]
    if rows or as_json:
        show(rows, "file", "damage", "segment", as_json=as_json)
    if not as_json:
        movable = any(is_movable(results, one) for one in found)
        hint = f"; {as_command('repair', results)} sets them aside" if movable else ""
        what = "damaged file" if full else "unreadable file"
        if full and any(one.denied for one in found):
            what = "damaged or unreadable file"
        click.echo(f"{counted(len(found), what)} in {results}{hint}")
        if not full:
            click.echo(f"{as_command('verify', results)} compares every file with its checksum")
    return len(found)


def _package(name: str, *, exact: bool, wanted: dict[str, str]) -> tuple[str, str]:
    if not is_installed(name):
        return "missing", f"pip install {name}{'==' if exact else '>='}{wanted.get(name, '0')}"
    version = metadata.version(name)
    if exact and version != wanted[name]:
        return version, f"results need {wanted[name]}: pip install {name}=={wanted[name]}"
    return version, ""


def _compiler() -> tuple[str, str]:
    """Where torch looks for one, without two seconds of importing torch's compiler."""
    program = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(program):
        return "found", ""
    return "none", "optional: compiled updates need one, e.g. the package g++"


def _gpu() -> tuple[str, str]:
    import torch

    if not torch.cuda.is_available():
        built = "a CUDA build of torch is needed" if torch.version.cuda is None else "no device"
        return "none", f"optional: {built}"
    free, total = torch.cuda.mem_get_info()
    name = torch.cuda.get_device_name()
    return name, f"CUDA {torch.version.cuda}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free"

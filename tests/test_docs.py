"""Documentation names files, headings, pages, commands and options that exist."""

import csv
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from cwbench.cli import COMMANDS, cli
from cwbench.cli.run import MethodCommand
from cwbench.methods import BASES, METHODS
from cwbench.spec.config import ENV_CONFIGS, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.spec.options import flag_name, per_run_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FOLDERS = ("cwbench", "methods", "sequences", "reports", "tests", "docs")

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")
FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+\.\w+)`")


def text_of(page: Path) -> str:
    """Without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", text_of(page), flags=re.M)
    return {"#" + re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_files_exist(page: Path) -> None:
    text = text_of(page)
    for target, anchor in LINK.findall(text):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}{anchor}"
    for name in FILE.findall(text):
        assert "NAME" in name or (ROOT / name).exists(), f"{page.name} names {name}"


def commands_of(page: Path) -> Iterator[list[str]]:
    """The words after `cwbench` of every command line, in the text and in blocks of code."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"^```.*?^```", text, flags=re.M | re.S))
    lines = re.findall(r"^(?:\$ )?(?:\.venv/bin/)?cwbench ([a-z].*)", blocks, flags=re.M)
    lines += re.findall(r"`cwbench ([a-z][^`\n]*)`", text_of(page))
    yield from (line.split(" #")[0].split() for line in lines)


def options_of(command: click.Command) -> set[str]:
    found = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    if isinstance(command, MethodCommand):  # its others depend on --method
        groups = [SACConfig, NetworkConfig, ScheduleConfig, *ENV_CONFIGS.values()]
        groups += [entry.method.config_class for entry in METHODS.values()]
        found |= {f"--{flag_name(field.name)}" for group in groups for field in fields(group)}
    return found | {"--help", "-h"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # older versions had others
        return
    for name, *words in commands_of(page):
        assert name in COMMANDS, f"{page.name}: cwbench {name}"
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if isinstance(command, click.Group) and words and words[0] in command.commands:
            command = command.commands[words[0]]
        flags = {word.split("=")[0].strip("[],;)") for word in words if word.startswith("--")}
        assert flags <= options_of(command), f"{page.name}: cwbench {name} {' '.join(words)}"


def test_options_whose_sweeps_train_in_one_fleet_are_listed() -> None:
    text = (DOCS / "experiments.md").read_text(encoding="utf-8")
    table = text.partition("**A sweep over a coefficient")[2].partition("\nAbove,")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    words = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows]
    listed = {(name, flag) for names, flags in words for name in names for flag in flags}
    assert listed == {
        (name, flag_name(option))
        for name, entry in BASES.items()
        for option in per_run_names(entry.method.config_class)
    }


def test_every_page_is_in_a_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index, flags=re.M | re.S)
    names = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    listed = {page for name in names for page in DOCS.glob(f"{name}.md")}
    assert {*DOCS.rglob("*.md")} - {DOCS / "index.md"} == listed


def test_measurements_are_complete() -> None:
    with (DOCS / "performance.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    for row in rows:
        assert all(value for name, value in row.items() if name != "runs"), row
        float(row["value"])

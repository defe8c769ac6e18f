"""The registry: what readers see of a method stands with its registration, once."""

import dataclasses
import importlib
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cwbench.cli import cli
from cwbench.learner import Method, MethodConfig
from cwbench.methods import BASES, FAMILIES, METHODS, VARIANTS, declared_options, find, known
from cwbench.reports.analysis import names
from cwbench.spec import options
from cwbench.spec.errors import UserError
from cwbench.spec.notebook_source import Source

DOCS = Path(__file__).parents[2] / "docs" / "methods"


def test_reports_have_a_title_for_every_method() -> None:
    assert list(names.METHODS) == [names.method_key(name) for name in BASES]
    titles = list(names.METHODS.values())
    assert all(titles) and len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", METHODS)
def test_an_entry_leads_to_a_method_of_a_family(name: str) -> None:
    entry = METHODS[name]
    assert issubclass(entry.method, Method) and entry.summary.endswith(".")
    assert entry.family in FAMILIES and entry.family != "yours"


@pytest.mark.parametrize("name", BASES)
def test_every_method_has_a_page(name: str) -> None:
    assert (DOCS / f"{name}.md").read_text().startswith("# ")


def test_variants_are_recorded_as_their_base() -> None:
    assert {entry.base for entry in VARIANTS.values()} <= BASES.keys()
    assert not [name for name, entry in BASES.items() if entry.base]


def test_the_list_shows_families_and_names() -> None:
    shown = CliRunner().invoke(cli, ["methods"]).output
    assert all(FAMILIES[entry.family] in shown for entry in METHODS.values())
    listed = CliRunner().invoke(cli, ["methods", "--names"]).output.split()
    assert listed == list(known())


@pytest.mark.parametrize("name", BASES)
def test_options_are_found_in_the_source(name: str) -> None:
    fields = options.field_names(METHODS[name].method.config_class)
    assert {*fields} == declared_options()[name] | {*options.field_names(MethodConfig)}


@pytest.mark.parametrize("name", BASES)
def test_numbers_have_a_lower_bound(name: str) -> None:
    """A negative strength would push where the method pulls; only logarithms may be negative."""
    config = BASES[name].method.config_class
    for field in dataclasses.fields(config):
        if options.field_type(config, field) in (int, float) and "log" not in field.name:
            bounds = field.metadata["bounds"]
            assert bounds["minimum"] is not None or bounds["above"] is not None, field.name


def test_code_kept_of_a_notebook_is_told_from_a_file(tmp_path: Path) -> None:
    class Mine(Method[MethodConfig]):
        interval = 10

    kept = tmp_path / "sources" / "0123456789ab.py"
    kept.parent.mkdir()
    kept.write_text(Source(Mine.__module__).text(Mine))
    with pytest.raises(UserError, match=r"SyntaxError: .*; of a notebook .* method=CLASS"):
        find(f"{kept}:Mine")


OWN = """
from pathlib import Path
from cwbench.learner import Method
from own_constants import VALUE

with open(Path(__file__).with_name("log"), "a") as log:
    log.write("executed\\n")

class Own(Method):
    value = VALUE
"""


def test_a_file_is_executed_once_until_it_is_edited_or_a_module_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file with a script's lines at its end would train again in every call."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "own_constants.py").write_text("VALUE = 1")
    file, log = tmp_path / "own.py", tmp_path / "log"
    file.write_text(OWN)
    name, flags = f"{file}:Own", ["--protocol", "demo", "--dry-run", "--device", "cpu"]
    made = CliRunner().invoke(cli, ["run", "--method", name, "--seq", "point3", *flags])
    assert made.exit_code == 0, made.output
    first = find(name)[1].method
    assert log.read_text().count("executed") == 1 and find(name)[1].method is first

    file.write_text(OWN.replace("value", "speed"))  # of equal size
    assert log.read_text().count("executed") == 1
    edited = find(name)[1].method
    assert hasattr(edited, "speed") and log.read_text().count("executed") == 2
    file.write_text("1 / 0")
    with pytest.raises(UserError, match=r"own.py line 1: ZeroDivisionError"):
        find(name)
    file.write_text(OWN)

    (tmp_path / "own_constants.py").write_text("VALUE = 22")
    importlib.reload(sys.modules["own_constants"])
    assert vars(find(name)[1].method)["value"] == 22
    assert log.read_text().count("executed") == 3
    importlib.reload(sys.modules["own_constants"])
    find(name)
    assert log.read_text().count("executed") == 4


def test_a_file_is_executed_again_when_a_base_in_another_file_is_edited(tmp_path: Path) -> None:
    base, child = tmp_path / "base.py", tmp_path / "child.py"
    base.write_text("from cwbench.learner import Method\n\nclass Base(Method):\n    value = 1\n")
    child.write_text(
        "from cwbench import methods\n\n"
        f"Base = methods.load({f'{base}:Base'!r})[1].method\n\n"
        "class Child(Base): ...\n"
    )
    sources = set()
    for value in ("1", "2"):
        base.write_text(base.read_text().replace("1", value))
        found = find(f"{child}:Child")[1]
        sources.add(found.source)
        assert str(getattr(found.method, "value")) == value  # noqa: B009
    assert len(sources) == 2


@pytest.fixture
def offering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with entry points of which only the first is a method."""
    (tmp_path / "offering.py").write_text(
        "from cwbench.learner import Method\n\nclass Good(Method):\n    pass\n"
    )
    info = tmp_path / "offering_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering-package\nVersion: 1.0\n")
    targets = {"good": "offering:Good", "no-module": "offering_package.nope:Pull"}
    targets |= {"no-class": "offering:Nope", "no-method": "offering:__name__"}
    targets |= {"ewc": "offering:Good"}
    lines = [f"{name} = {target}" for name, target in targets.items()]
    (info / "entry_points.txt").write_text("\n".join(["[cwbench.methods]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "offering", raising=False)


REASONS = {
    "no-module": "ModuleNotFoundError: No module named 'offering_package'",
    "no-class": "AttributeError: module 'offering' has no attribute 'Nope'",
    "no-method": "'offering' is not a class derived from Method",
}


@pytest.mark.usefixtures("offering")
def test_an_entry_point_that_cannot_be_used_harms_no_other_method() -> None:
    assert list(known()) == [*METHODS, "good"] and known()["ewc"] is METHODS["ewc"]
    assert find("good")[1].method.__name__ == "Good"
    for name, reason in REASONS.items():
        message = f"method '{name}' of package offering-package cannot be used: {reason}"
        with pytest.raises(UserError) as error:
            find(name)
        assert str(error.value) == message
    with pytest.raises(UserError, match="unknown method 'ewcc'; did you mean 'ewc'"):
        find("ewcc")
    listed = CliRunner().invoke(cli, ["methods", "--names"])
    assert listed.stdout.split() == list(known())
    named = [line.split("'")[1] for line in listed.stderr.splitlines()]
    assert named == [*REASONS, "ewc"] and "another method has this name" in listed.stderr

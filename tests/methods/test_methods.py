"""The registry: what readers see of a method stands with its registration, once."""

import dataclasses
from pathlib import Path

import pytest
from click.testing import CliRunner

from cwbench.cli import cli
from cwbench.experiment.notebook_source import Source
from cwbench.learner import Method, MethodConfig
from cwbench.methods import BASES, FAMILIES, METHODS, VARIANTS, declared_options, find, known
from cwbench.reports.analysis import names
from cwbench.spec import options
from cwbench.spec.errors import UserError

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
    kept.write_text("\n".join(Source(Mine.__module__).collect(Mine)))
    with pytest.raises(UserError, match=r"SyntaxError: .*; of a notebook .* method=CLASS"):
        find(f"{kept}:Mine")

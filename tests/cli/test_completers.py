"""Names in shells."""

import pytest
from click.shell_completion import ShellComplete

from cwbench.cli import cli


@pytest.mark.parametrize(
    ("before", "typed", "names"),
    [
        ("run --method", "perf", {"perfect-memory"}),
        ("run --method", "ewc,perf", {"ewc,perfect-memory"}),
        ("run --seq", "cw2", {"cw20"}),
        ("run --protocol", "com", {"compact", "componet"}),
        ("run --method ewc --seq cw3-11 --protocol", "com", {"compact", "componet"}),
        ("pairwise --method", "ew", {"ewc"}),
        ("tune", "ew", {"ewc"}),
        ("check", "clonex-", {"clonex-rr"}),
        ("experiment", "pai", {"pairs"}),
    ],
)
def test_names_are_completed(before: str, typed: str, names: set[str]) -> None:
    found = ShellComplete(cli, {}, "cwbench", "_CWBENCH_COMPLETE")
    items = found.get_completions(before.split(), typed)
    assert {item.value for item in items} == names


@pytest.mark.parametrize("option", ["--method", "--seq", "--protocol"])
def test_what_is_named_may_be_in_a_file(option: str) -> None:
    found = ShellComplete(cli, {}, "cwbench", "_CWBENCH_COMPLETE")
    [item] = found.get_completions(["run", option], "mine.")
    assert (item.type, item.value) == ("file", "mine.")

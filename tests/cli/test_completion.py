"""Completion in shells."""

import pytest
from click.shell_completion import ShellComplete

from cwbench.cli import cli, main


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", shell])
    assert "_CWBENCH_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flag", "typed", "names"),
    [("--method", "perf", {"perfect-memory"}), ("--seq", "cw2", {"cw20"})],
)
def test_names_are_completed(flag: str, typed: str, names: set[str]) -> None:
    found = ShellComplete(cli, {}, "cwbench", "_CWBENCH_COMPLETE")
    items = found.get_completions(["run", flag], typed)
    assert {item.value for item in items} == names

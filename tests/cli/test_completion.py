"""Completion in shells."""

import pytest

from cwbench.cli import main


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", shell])
    assert "_CWBENCH_COMPLETE" in capsys.readouterr().out

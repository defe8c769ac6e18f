"""How `cwbench board` names contributions; tests/reports/board test what it refuses."""

from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.cli import main
from cwbench.cli.board import _parse


def test_a_contribution_is_named_after_its_folder_or_archive() -> None:
    assert _parse("A & B=of/cw3-1.tar.gz") == ("cw3-1", "A & B", Path("of/cw3-1.tar.gz"))
    assert _parse("mine") == ("mine", "mine", Path("mine"))


def test_names_must_differ(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["board", "--check", "A=one/cw3", "B=two/cw3"])
    assert ended.value.code == 2
    assert "two contributions have the same name" in capsys.readouterr().err


def test_faults_are_counted_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made-up runs are incomplete, and their protocol is not the one they name."""
    results = tmp_path / "made-up"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.5)
    with pytest.raises(SystemExit) as ended:
        main(["board", str(results), "--out", str(tmp_path / "site")])
    assert ended.value.code == 1
    first, *faults = capsys.readouterr().out.splitlines()
    assert first == f"made-up: {len(faults)} faults" and len(faults) > 1
    assert any("not finished" in fault for fault in faults)
    assert not (tmp_path / "site").exists()

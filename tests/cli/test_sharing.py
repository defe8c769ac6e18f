"""What the commands that share results print; tests/sharing test what they write."""

from pathlib import Path

import numpy as np
import pytest
from sample_results import small, write_results

from cwbench.cli import main


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    return write_results(folder, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])


def test_every_exported_file_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["export", str(results), "--to", "rliable"])
    [line] = capsys.readouterr().out.splitlines()
    assert Path(line).parent == results / "export" / "rliable"
    assert np.load(line)["ewc"].shape == (2, 3)


def test_results_without_weights_have_nothing_to_export(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("minari")
    main(["export", str(results), "--to", "minari"])
    assert "nothing to write as minari: no run has what it needs" in capsys.readouterr().out


def test_a_folder_is_pushed_and_pulled(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["push", str(results), str(tmp_path / "shared")])
    main(["pull", str(tmp_path / "shared"), str(tmp_path / "mine")])
    assert f"results are in {tmp_path / 'mine'}" in capsys.readouterr().out
    ours, pulled = (
        sorted(file.name for file in (tmp_path / name / "segments").iterdir())
        for name in ("results", "mine")
    )
    assert ours == pulled

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


def test_an_empty_export_says_what_it_needs(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("cwbench.sharing.export.extra", lambda *names: None)  # minari is optional
    main(["export", str(results), "--to", "minari"])
    said = "nothing to write as minari: no run has stored transitions; recall, "
    assert capsys.readouterr().out.startswith(said)
    begun = tmp_path / "begun"
    write_results(begun, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.5)
    main(["export", str(begun), "--to", "rliable"])
    assert capsys.readouterr().out == "nothing to write as rliable: no run has ended\n"


def test_what_an_export_leaves_out_is_named(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in results.glob("segments/*-3-*/evals.csv"):
        table.write_text("nonsense")
    with pytest.raises(SystemExit) as ended:
        main(["export", str(results), "--to", "rliable"])
    said = capsys.readouterr()
    assert ended.value.code == 1 and not said.out
    assert said.err.count("unexpected header") == 2 and said.err.count("is left out") == 2


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

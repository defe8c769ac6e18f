"""Reports and tables from Python."""

from pathlib import Path

import pandas as pd
import pytest
from sample_results import small, write_results

import cwbench


def test_a_report_needs_a_results_folder(tmp_path: Path) -> None:
    """That it writes one, the notebook's test checks."""
    with pytest.raises(cwbench.UserError, match="no results folder at"):
        cwbench.report(tmp_path / "nowhere")
    with pytest.raises(cwbench.UserError, match="no results folder at '--help'"):
        cwbench.report("--help")
    with pytest.raises(cwbench.UserError, match="3 is not a folder; give its path"):
        cwbench.report(tmp_path, 3)  # type: ignore[arg-type]


def test_options_are_those_of_the_command(tmp_path: Path) -> None:
    """Lists are its names between commas, and `True` is a flag."""
    settings = [small("ewc"), small("recall"), small("finetuning")]
    write_results(tmp_path, sequence_names=["cw3-1", "cw3-2"], settings=settings, seeds=[0, 1])
    some = {"seq": "cw3-1", "method": ["ewc", "rec*"], "level": 0.8}
    page = cwbench.report(tmp_path, tmp_path / "some", png=True, all_cells=False, **some)
    assert page == tmp_path / "some" / "index.html" and page.exists()
    assert list(page.parent.glob("figures/*.png"))
    text = (page.parent / "tables" / "cw3.csv").read_text()
    assert "80 % bootstrap" in text
    written = pd.read_csv(page.parent / "tables" / "cw3.csv", comment="#", dtype={"row": str})
    assert set(written["column"]) == {"EWC", "RECALL"} and set(written["row"]) == {"1"}
    given = cwbench.table(tmp_path, "cw3", **some)
    pd.testing.assert_frame_equal(given, written, check_dtype=False)
    for wrong, message in (
        ({"levle": 0.8}, "unknown option '--levle'; did you mean '--level'"),
        ({"level": 2}, "2.0 is too large"),
        ({"table": "cw3"}, "a report has all tables; cwbench.table returns one"),
    ):
        with pytest.raises(cwbench.UserError, match=message):
            cwbench.report(tmp_path, **wrong)


def test_a_table_is_of_one_protocol(tmp_path: Path) -> None:
    for name in ("paper", "smoke"):
        settings = [small("ewc", protocol=name)]
        write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0], name=name)
    with pytest.raises(cwbench.UserError, match=r"table cw3: .*; name one with protocol="):
        cwbench.table(tmp_path, "cw3")
    assert len(cwbench.table(tmp_path, "cw3", protocol="smoke")) > 1

"""The board's page."""

import tarfile
from pathlib import Path

import numpy as np
import pandas as pd

from cwbench.reports import build
from cwbench.reports.board.site import Entry, render

SHIPPED = Path(__file__).resolve().parents[3] / "docs" / "results" / "cw3-1.tar.gz"


def test_rows_show_what_the_tables_show(tmp_path: Path) -> None:
    """Best first; the value is the mean of the last five evaluations of every task."""
    with tarfile.open(SHIPPED) as packed:
        packed.extractall(tmp_path, filter="data")
    page = render([Entry("cw3-1", "A & B", build.read(tmp_path / "cw3-1"))])
    table = page.split("<tbody>")[1]
    assert table.index("RECALL") < table.index("ClonEx") < table.index("Fine-tuning")
    ends = [
        pd.read_csv(file).groupby("eval_position")["successes"].apply(lambda x: x[-5:].mean() / 10)
        for file in tmp_path.glob("cw3-1/segments/recall-3-*/evals.csv")
    ]
    assert len(ends) == 3
    assert f"<td>RECALL</td><td>{np.mean(ends):.2f} <small>[0.91, 0.94]" in table
    assert "A &amp; B" in page and 'href="cw3-1/index.html"' in page

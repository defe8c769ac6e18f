"""The notebook of docs/ works as it stands."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

import cwbench

NOTEBOOK = Path(__file__).parent.parent / "docs" / "python.ipynb"


def test_the_notebook_trains_evaluates_and_reports(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    runs = cwbench.load_runs(tmp_path / "results")
    assert {run.state for run in runs} == {"done"}
    assert sorted((run.method, run.seed) for run in runs) == [
        ("Small", 0),
        ("finetuning", 0),
        ("finetuning", 1),
    ]
    assert (tmp_path / "results" / "report" / "index.html").exists()
    shown = str([cell.outputs for cell in notebook.cells if cell.cell_type == "code"])
    assert "4 to train in 2 fleets" in shown and "1,200 of 1,200 steps" in shown

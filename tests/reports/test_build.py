"""The files of a report: LaTeX that compiles as it is, and which processes draw figures."""

import re
import shutil
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import torch
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.intervals import Estimate
from cwbench.reports.analysis.scores import Score, Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.figures import figures
from cwbench.reports.tables.formats import latex, tex
from cwbench.reports.tables.model import Block, Cell, Table
from cwbench.spec.config import MetaWorldConfig


def test_figures_are_drawn_in_this_process_where_cuda_is_in_use(
    triplets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked process inherits CUDA objects and dies when it frees them."""
    study = build.read(triplets)
    with build._drawer(study) as pool:
        assert isinstance(pool, ProcessPoolExecutor)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with build._drawer(study) as pool:
        assert pool is None
    planned = build.figure_plan
    monkeypatch.setattr(build, "figure_plan", lambda *given: planned(*given)[:3])
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "cw3-old.tex").touch()
    made = build.write_report(study, triplets, tmp_path)
    assert made.leftover == ["tables/cw3-old.tex"]
    drawn = list((tmp_path / "figures").glob("*.pdf"))
    assert len(drawn) == made.figures == 3 and all(file.stat().st_size for file in drawn)


def test_report_tex_has_every_table_and_figure_with_labels_of_their_own(
    triplets: Path, tmp_path: Path
):
    tables = list(build.tables_of(build.read(triplets)))
    build.write_tables(tables, tmp_path, {"cw3-average": "Curves of 3 & more."})
    text = (tmp_path / "report.tex").read_text()
    assert text.index(r"\section*{Tables}") < text.index(r"\input{tables/cw3}")
    assert r"{figures/cw3-average.pdf}" in text and r"\caption{Curves of 3 \& more.}" in text
    inputs = re.findall(r"\\input\{(.*?)\}", text)
    parts = [(tmp_path / f"{name}.tex").read_text() for name in inputs]
    labels = re.findall(r"\\label\{(.*?)\}", "".join([text, *parts]))
    assert len(labels) == len(set(labels)) == len(inputs) + 1
    assert (tmp_path / "tables" / "cw3.tex").read_text().count("Intervals: t.") == 0
    assert (tmp_path / "tables" / "cw3-t.tex").read_text().count("Intervals: t.") == 1


def test_a_report_on_two_protocols_says_of_which_one_everything_is(tmp_path: Path):
    """A label that two tables have refers to the second; figures have no footer to tell."""
    settings = [small("ewc"), small("ewc", env=MetaWorldConfig(reward="v2"))]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = build.read(tmp_path)
    tables = list(build.tables_of(study, "cw3"))
    for name, _, table in tables:
        for interval, end in (("bootstrap", ""), ("t", "-t")):
            assert rf"\label{{table:{name}{end}}}" in latex(table, interval)
    assert len({name for name, _, _ in tables}) == len(tables) == 2
    plan = build.figure_plan([scores for _, scores, _ in tables], tmp_path)
    ends = [one.caption.rpartition(" Protocol ")[2] for one in plan]
    steps = "steps-per-task 10,000, eval-every 1,000."  # not the paper's
    assert set(ends) == {f"paper, {steps}", f"paper, reward v2, {steps}"}
    write_results(tmp_path / "one", sequence_names=["cw3-1"], settings=settings[:1], seeds=[0])
    alone = build.read(tmp_path / "one")
    [(name, scores, _)] = build.tables_of(alone, "cw3")
    assert name == "cw3"
    assert not any("Protocol" in one.caption for one in build.figure_plan([scores], tmp_path))


TWO_COLUMNS = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[utf8]{inputenc}
\usepackage[textwidth=6.75in,columnsep=0.25in]{geometry}
\usepackage{amsmath,bm,booktabs,graphicx}
\begin{document}
"""


def typeset(folder: Path, name: str) -> str:
    """What pdflatex says."""
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no TeX engine is installed")
def test_latex_compiles_as_it_is(study: Study, tmp_path: Path):
    """The report, and its tables in a page of two columns: nothing is wider than the text."""
    build.write_tables(list(build.tables_of(study)), tmp_path)
    inputs = re.findall(r"\\input\{.*?\}", (tmp_path / "report.tex").read_text())
    body = "\n".join([*inputs, r"\end{document}"])
    (tmp_path / "columns.tex").write_text(TWO_COLUMNS + body)
    for name in ("report", "columns"):
        said = typeset(tmp_path, f"{name}.tex")
        assert "Overfull" not in said and "too large" not in said
        assert (tmp_path / f"{name}.pdf").stat().st_size > 10_000


MEASURED = r"\renewcommand\resizebox[3]{\sbox0{#3}\ifdim\wd0>\linewidth\typeout{Shrunk}\fi\usebox0}"


@pytest.mark.skipif(
    not (shutil.which("pdflatex") and shutil.which("pdftotext")), reason="no TeX is installed"
)
def test_every_row_of_a_large_table_is_printed_and_legible(tmp_path: Path):
    cell = Cell(Score(Estimate(-0.5, *[-0.75, -0.25] * 3), 5), asked=5)
    columns = tuple(f"method {column}." for column in range(14))
    rows = tuple((f"row {row}.", (cell,) * 14) for row in range(100))
    table = Table("t", "Long and wide.", (Block("Forgetting", "Pair", columns, rows),))
    body = MEASURED + latex(table) + r"\end{document}"
    (tmp_path / "large.tex").write_text(build.PREAMBLE + body)
    said = typeset(tmp_path, "large.tex")
    assert "too large" not in said and "Shrunk" not in said
    subprocess.run(["pdftotext", "-layout", "large.pdf"], cwd=tmp_path, check=True)
    text = (tmp_path / "large.txt").read_text()
    parts = text.count("method 0.")
    assert [text.count(f"row {row}.") for row in range(100)] == [3] * 100
    assert [text.count(name) for name in columns] == [parts] * 14
    assert text.count("-0.75, -0.25") == 100 * 14


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no TeX engine is installed")
def test_a_figure_is_printed_in_its_own_size(study: Study, tmp_path: Path):
    (tmp_path / "figures").mkdir()
    figures.draw(Scores(study, study.protocols[0]), "aggregates", tmp_path / "figures/aggregates")
    body = build.latex_figure("aggregates", "Aggregates.") + "\n\\end{document}"
    (tmp_path / "figure.tex").write_text(TWO_COLUMNS + body)
    said = typeset(tmp_path, "figure.tex")
    assert "Overfull" not in said and "aggregates.pdf" in said


def test_after_ctrl_c_no_more_figures_are_drawn(study: Study):
    with pytest.raises(KeyboardInterrupt), build._drawer(study) as pool:
        assert pool is not None
        jobs = [pool.submit(time.sleep, 0.05) for _ in range(5000)]  # minutes
        raise KeyboardInterrupt
    assert jobs[-1].cancelled()


def test_the_page_is_replaced_in_one_step(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.2)
    for _ in range(2):
        build.write_page(tmp_path, tmp_path / "report")
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["index.html"]


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path):
    """On a full disk even a temporary file would be in the way."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.2)
    (tmp_path / "report" / "index.html").mkdir(parents=True)
    with pytest.raises(OSError, match=r"report/index\.html"):
        build.write_page(tmp_path, tmp_path / "report")
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["index.html"]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no TeX engine is installed")
def test_latin_characters_are_typeset_with_the_fonts_that_latex_starts_with(tmp_path: Path):
    """`«` and `đ` are in none of them and go by their numbers."""
    latin = [chr(code) for code in range(0x180) if chr(code).isprintable()]
    body = "\n\n".join(map(tex, latin)) + "\n\\end{document}"
    (tmp_path / "latin.tex").write_text(build.PREAMBLE + body, encoding="utf-8")
    assert "Missing character" not in typeset(tmp_path, "latin.tex")
    assert tex("đ «Žižek»") == "(U+0111) (U+00AB)Žižek(U+00BB)"

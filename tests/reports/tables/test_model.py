"""Which cells a table has, which are bold, and how they are written down to the byte."""

import csv
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis import metrics
from cwbench.reports.analysis.intervals import INTERVALS, Estimate
from cwbench.reports.analysis.scores import Score, Scores, nothing
from cwbench.reports.analysis.study import Options
from cwbench.reports.figures import figures
from cwbench.reports.tables import catalog, formats
from cwbench.reports.tables.headline import stacked
from cwbench.reports.tables.model import Block, Cell, Table, mark_bold
from cwbench.spec.config import MetaWorldConfig

GOLDEN = Path(__file__).parent / "golden"


def cell(value: float, low: float, high: float, *, bold: bool = False, seeds: int = 5) -> Cell:
    ends = (low, high, low - 0.1, high + 0.1, low, high)
    kinds = frozenset(INTERVALS if bold else ())
    return Cell(Score(Estimate(value, *ends), seeds), bold=kinds, asked=5)


def sample_table() -> Table:
    rows = (
        ("1", (cell(0.3, 0.29, 0.31), cell(0.9, 0.88, 0.92, bold=True))),
        ("2", (cell(-0.001, -0.2, 0.1), Cell(nothing("no finished run"), asked=5))),
        ("mean", (cell(0.15, 0.1, 0.2, seeds=3), Cell(nothing("no finished run"), asked=5))),
    )
    lost = (("1", (cell(0.1, 0.0, 0.2), Cell(text="5 of 5 & <more>"))),)
    return Table(
        "cw3",
        "Numbers at 100% & more.",
        (
            Block("Average Performance", "CW3", ("Fine-tuning", "RE_CALL"), rows, mean=True),
            Block("Forgetting", "CW3", ("Fine-tuning", "RE_CALL"), lost),
        ),
        {"protocol": "Protocol paper", "hash": "hash 0123"},
    )


@pytest.mark.parametrize("format", formats.FORMATS)
def test_layout_byte_for_byte(format: str):
    write, suffix = formats.FORMATS[format]
    assert write(sample_table(), "bootstrap") == (GOLDEN / f"cw3{suffix}").read_text()


def test_side_by_side_layout_byte_for_byte():
    columns = ("Ave. Perf.", "Forgetting") * 2
    cells = tuple(cell(value, value - 0.1, value + 0.1) for value in (0.1, 0.2, 0.3, 0.4))
    block = Block("", "Method", columns, (("EWC", cells),), spans=(("CW10", 2), ("CW20", 2)))
    table = Table("cw10-cw20", "Long.", (block,), {"protocol": "Protocol paper"})
    assert formats.latex(table, "t") == (GOLDEN / "cw10-cw20.tex").read_text()
    assert "| Method | CW10 Ave. Perf. | CW10 Forgetting | CW20 Ave. Perf." in formats.markdown(
        table
    )


def published(name: str) -> list[dict[str, str]]:
    text = (files("cwbench.reports") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_bold_rule_against_the_paper_marks():
    """222 of 228: no simple rule gives all of them."""
    marks = {
        (row["table"], row["sequence"], row["method"], row["metric"]): row["bold"] == "1"
        for row in published("bold_marks.csv")
    }
    cells: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for file, table in (("cw3.csv", "CW3"), ("cw6.csv", "CW6"), ("cw10_cw20.csv", "")):
        for row in published(file):
            place = (table or row["sequence"], row["sequence"], row["metric"])
            ends = [float(row[key]) if row[key] else np.nan for key in ("ci_low", "ci_high")]
            cells.setdefault(place, {})[row["method"]] = cell(float(row["mean"]), *ends)
    right = total = 0
    for (table, sequence, metric), by_method in cells.items():
        if sequence == "mean" or (metric == "forgetting" and table in ("CW3", "CW6")):
            continue  # without intervals, or marked by best value only
        marked = mark_bold(list(by_method.values()), -1 if metric == "forgetting" else 1)
        for method, got in zip(by_method, marked, strict=True):
            right += ("percentile" in got.bold) == marks[table, sequence, method, metric]
            total += 1
    assert (right, total) == (222, 228)


def test_bold_follows_the_interval_that_is_shown():
    """0.88 reaches 0.93 by its t interval [0.76, 1.00] and not by [0.84, 0.92]."""
    second = Cell(Score(Estimate(0.88, 0.77, 0.99, 0.76, 1.0, 0.84, 0.92), 3))
    best = Cell(Score(Estimate(0.93, 0.92, 0.94, 0.91, 0.95, 0.92, 0.94), 3))
    marked, _ = mark_bold([second, best], 1)
    assert marked.bold == {"bootstrap", "t"}
    assert formats.latex_cell(marked, "t").startswith(r"\bm")
    assert not formats.latex_cell(marked, "percentile").startswith(r"\bm")


def test_one_value_alone_is_not_best():
    alone = [cell(0.9, 0.8, 1.0), Cell(nothing("no finished run"))]
    assert [bool(c.bold) for c in mark_bold(alone, 1)] == [False, False]


def test_without_intervals_only_the_best_value_is_bold():
    cells = [cell(0.9, np.nan, np.nan), cell(0.89, np.nan, np.nan)]
    assert [bool(c.bold) for c in mark_bold(cells, 1)] == [True, False]
    assert [bool(c.bold) for c in mark_bold(cells, -1)] == [False, True]


def test_a_cell_is_the_mean_over_seeds_read_from_the_files(triplets: Path):
    """Second route: straight from the CSV lines of one run's folders."""
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "recall")]
    per_seed = []
    for run in group.runs:
        text = (triplets / "segments" / run.folders[-1] / "evals.csv").read_text()
        last = csv.DictReader(text.splitlines())
        rates = [int(r["successes"]) / int(r["episodes"]) for r in last if int(r["step"]) > 8000]
        assert len(rates) == 2 * 3  # a window of two evaluations, three tasks
        per_seed.append(np.mean(rates))
    scores = Scores(study, study.protocols[0])
    block = stacked(scores, "cw3")[0]
    shown = block.rows[0][1][block.columns.index("RECALL")]
    assert shown.value == pytest.approx(np.mean(per_seed))


def test_transfer_of_the_reference_method_is_zero_on_a_first_task(triplets: Path):
    """Fine-tuning's first task is the very segment that serves as reference."""
    study = build.read(triplets)
    [group] = [g for g in study.groups if (g.sequence, g.method) == ("cw3-1", "finetuning")]
    scores = Scores(study, study.protocols[0])
    assert scores.task_score([(group, 0)], "forward_transfer").value == pytest.approx(0)
    by_hand = metrics.area(group.complete).mean(0)
    base = scores.reference_of(group).areas(group.tasks)
    want = np.mean((by_hand - base) / (1 - base))
    assert scores.score([group], "forward_transfer").value == pytest.approx(want)


def test_every_table_has_the_same_cells_in_every_format(triplets: Path):
    from cwbench.reports.tables.verify import READERS, sign

    study = build.read(triplets)
    for name, scores, table in build.tables_of(study):
        cells = sum(len(row) for block in table.blocks for _, row in block.rows)
        for format in formats.FORMATS:
            assert len(READERS[format](sign(scores, table, format, "t"))) == cells, (name, format)


def test_the_hash_follows_the_numbers(triplets: Path):
    study = build.read(triplets)
    wide = build.read(triplets, Options(window=3))
    footers = []
    for one in (study, study, wide):
        scores = Scores(one, one.protocols[0])
        entry = next(catalog.entries(scores))
        footers.append(catalog.make(scores, entry).footer["hash"])
    assert footers[0] == footers[1] != footers[2]


def test_report_tex_has_every_table_and_figure_with_labels_of_their_own(
    triplets: Path, tmp_path: Path
):
    tables = list(build.tables_of(build.read(triplets)))
    build.write_tables(tables, tmp_path, ["cw3-average"])
    text = (tmp_path / "report.tex").read_text()
    assert text.index(r"\section*{Tables}") < text.index(r"\input{tables/cw3}")
    assert r"{figures/cw3-average.pdf}" in text
    inputs = re.findall(r"\\input\{(.*?)\}", text)
    parts = [(tmp_path / f"{name}.tex").read_text() for name in inputs]
    labels = re.findall(r"\\label\{(.*?)\}", "".join([text, *parts]))
    assert len(labels) == len(set(labels)) == len(inputs) + 1
    assert (tmp_path / "tables" / "cw3.tex").read_text().count("Intervals: t.") == 0
    assert (tmp_path / "tables" / "cw3-t.tex").read_text().count("Intervals: t.") == 1


def test_the_bound_of_the_sign_flip_test_is_that_of_the_seeds_at_hand(triplets: Path):
    study = build.read(triplets)
    scores = Scores(study, study.protocols[0])
    entry = catalog.find(scores, "cw3-comparison-performance")
    assert entry is not None and "with 5 seeds it cannot go below 0.0625" in entry.caption


def test_comparisons_against_one_method(triplets: Path):
    def rows(options: Options) -> list[str]:
        [(_, _, table)] = build.tables_of(
            build.read(triplets, options), "cw3-comparison-performance"
        )
        return [name for name, _ in table.blocks[0].rows]

    assert len(rows(Options())) == 15
    against = rows(Options(against="ewc"))
    assert len(against) == 5 and all(name.endswith(" - EWC") for name in against)


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
def test_latex_compiles_as_it_is(triplets: Path, tmp_path: Path):
    """The report, and its tables in a page of two columns: nothing is wider than the text."""
    study = build.read(triplets)
    build.write_tables(list(build.tables_of(study)), tmp_path)
    inputs = re.findall(r"\\input\{.*?\}", (tmp_path / "report.tex").read_text())
    body = "\n".join([*inputs, r"\end{document}"])
    (tmp_path / "columns.tex").write_text(TWO_COLUMNS + body)
    for name in ("report", "columns"):
        said = typeset(tmp_path, f"{name}.tex")
        assert "Overfull" not in said and "too large" not in said
        assert (tmp_path / f"{name}.pdf").stat().st_size > 10_000


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no TeX engine is installed")
def test_a_figure_is_printed_in_its_own_size(triplets: Path, tmp_path: Path):
    study = build.read(triplets)
    (tmp_path / "figures").mkdir()
    figures.draw(Scores(study, study.protocols[0]), "aggregates", tmp_path / "figures/aggregates")
    body = build.latex_figure("aggregates") + "\n\\end{document}"
    (tmp_path / "figure.tex").write_text(TWO_COLUMNS + body)
    said = typeset(tmp_path, "figure.tex")
    assert "Overfull" not in said and "aggregates.pdf" in said


def test_performance_in_own_windows_is_read_from_training_episodes(tmp_path: Path):
    """Only for protocols that count the last step: CompoNet's and CKA-RL's measure."""
    last = small("finetuning", env=MetaWorldConfig(success="last"))
    root = write_results(
        tmp_path, sequence_names=["cw3-1"], settings=[last, small("finetuning")], seeds=range(2)
    )
    for file in root.glob("segments/*/evals.csv"):  # half of the episodes end solved
        evals = pd.read_csv(file)
        evals.assign(v3_last=evals["successes"] // 2).to_csv(file, index=False)
    study = build.read(root)
    one, other = study.protocols  # never in one table
    tables = [catalog.find(Scores(study, protocol), "cw3-own-window") for protocol in (one, other)]
    [entry] = [entry for entry in tables if entry is not None]
    [(_, (own, end, lost))] = entry.blocks()[0].rows
    per_seed = []
    [group] = [g for g in study.groups if g.protocol.env.get("success") == "last"]
    for run in group.runs:
        for folder in run.folders[1:]:  # the first task is left out
            text = (root / "segments" / folder / "train.csv").read_text()
            *_, row = csv.DictReader(text.splitlines())
            per_seed.append(float(row["successes"]) / float(row["episodes"]))
    assert own.value == pytest.approx(np.mean(per_seed))
    assert end.value < 0.5 and lost.value > 0  # which own windows cannot show
    title = catalog.make(Scores(study, group.protocol), entry).footer["environment"]
    assert "at the last step (v3-last)" in title

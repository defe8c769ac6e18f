"""`verify` finds what was changed, in the file or in the results, and nothing else."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.study import Options, Study
from cwbench.reports.tables.formats import FORMATS
from cwbench.reports.tables.verify import (
    READERS,
    _same,
    recipe_of,
    recipe_options,
    sign,
    tables_in,
    verify,
)
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.errors import UserError


def exported(study: Study, format: str, interval: str = "bootstrap") -> str:
    [(_, scores, table)] = build.tables_of(study, "cw3")
    return sign(scores, table, format, interval)


@pytest.mark.parametrize("format", FORMATS)
def test_an_untouched_table_is_equal(triplets: Path, study: Study, format: str):
    text = exported(study, format)
    assert recipe_of(text)["window"] == study.window(study.protocols[0])  # though none was chosen
    verdict = verify(text, build.read(triplets))
    assert verdict.cells == 3 * 3 * 6  # metrics, two sequences and their mean, methods
    assert verdict.differences == []


@pytest.mark.parametrize("format", FORMATS)
def test_an_edited_cell_is_named(study: Study, format: str):
    text = exported(study, format)
    lines = text.splitlines(keepends=True)
    row = next(i for i, line in enumerate(lines) if "0.9" in line and "RECALL" not in line[:9])
    lines[row] = lines[row].replace("0.9", "0.8", 1)
    [difference] = verify("".join(lines), study).differences
    assert difference.startswith("Average Performance, row ")
    assert "the file has" in difference and "the results give" in difference


def test_a_cell_that_only_the_file_or_only_the_results_have_is_named(study: Study):
    header, first, *others = exported(study, "csv").splitlines(keepends=True)
    [lacking] = verify("".join([header, *others]), study).differences
    assert "the file has 'no such cell', the results give '" in lacking
    block, row, _, *cells = first.split(",")
    more = ",".join([block, row, "Mine", *cells])
    [added] = verify("".join([header, first, more, *others]), study).differences
    assert "column Mine: the file has '" in added
    assert added.endswith("the results give 'no such cell'")


@pytest.mark.parametrize(("factor", "differs"), [(1 + 5e-6, 0), (1 + 5e-5, 1), (1 - 5e-5, 1)])
def test_only_the_last_of_six_digits_may_differ(study: Study, factor: float, differs: int):
    """Another processor adds in another order."""
    header, first, *others = exported(study, "csv").splitlines(keepends=True)
    block, row, column, value, rest = first.split(",", 4)
    edited = f"{block},{row},{column},{float(value) * factor:.9g},{rest}"
    assert edited != first
    assert len(verify("".join([header, edited, *others]), study).differences) == differs


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("1.04e-17,3,", "0,3,", True),
        ("0,3,", "-1e-17,3,", True),
        ("0,3,", "0.00001,3,", False),
        ("0,3,", ",3,", False),
        ("0.56 [0.36, 0.75]", "0.56 [0.36, 0.76]", False),
    ],
)
def test_what_rounding_leaves_of_zero_is_zero(old: str, new: str, same: bool):
    assert _same(old, new) == same


def test_changed_results_are_noticed(triplets: Path, study: Study, tmp_path: Path):
    text = exported(study, "latex")
    copy = tmp_path / "results"
    shutil.copytree(triplets, copy)
    file = next(copy.glob("segments/ewc-3-hammer-s0-*/evals.csv"))
    lines = file.read_text().splitlines()
    cells = lines[-1].split(",")
    cells[4] = "0" if cells[4] != "0" else "10"
    file.write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n")
    places = [line.split(":")[0] for line in verify(text, build.read(copy)).differences]
    assert places
    assert all(place.endswith("column EWC") for place in places)
    assert not any("row 2" in place for place in places)  # cw3-2 does not use that segment


def test_a_table_of_other_settings_is_not_compared(study: Study):
    text = exported(study, "latex").replace('"protocol": "', '"protocol": "0')
    [difference] = verify(text, study, "theirs").differences
    assert difference.startswith("theirs has no run under protocol 0")
    assert "give the folder that the table was made from with --results" in difference


@pytest.mark.parametrize("text", ["", "% cwbench-table {", '% cwbench-table {"table": "cw3"}'])
def test_a_file_without_recipe_is_an_error(text: str):
    with pytest.raises(UserError, match="cwbench-table"):
        recipe_of(text)


def test_options_survive_in_a_table(tmp_path: Path):
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1])
    chosen = Options(
        window=3,
        level=0.8,
        against="ewc",
        all_cells=True,
        success="v3-any",
        protocols=("paper", "*"),
        sequences=("cw3-1", "cw3-*"),
        methods=("ewc", "recall"),
    )
    for options in (Options(window=2), chosen):
        study = build.read(tmp_path, options)
        recipe = recipe_of(exported(study, "csv"))
        assert recipe_options(recipe) == replace(options, protocol=study.protocols[0].key)
    del recipe["level"]  # as in tables of early versions
    assert recipe_options(recipe).level == Options.level


def test_latex_tables_of_version_0_2_are_still_read():
    new = [r"\multicolumn{2}{c}{\textbf{Forgetting}} \\[0.5mm]", r"CW3 & EWC \\", r"\midrule"]
    new += [r"1 & $0.30$ \\", r"\midrule", r"mean & $0.15$ \\", r"\midrule[\heavyrulewidth]"]
    old = [r"\multicolumn{2}{c}{\textbf{\underline{Forgetting}}} \\", r"\vspace{-2mm}\\"]
    old += [r"CW3 & EWC \\", r"\midrule", r"1 & $0.30$ \\", r"\hline", r"\vspace{-3mm}\\"]
    old += [r"mean & $0.15$ \\", r"\hline \hline", r"\vspace{-2mm}\\"]
    cells = READERS["latex"]("\n".join(new))
    assert cells == READERS["latex"]("\n".join(old)) and len(cells) == 2


def test_a_table_of_one_protocol_is_verified_next_to_a_shorter_one(tmp_path: Path):
    """Its window is longer than a task of the other protocol."""
    short = {"steps_per_task": 1000, "eval_every": 1000}
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1])
    settings = [small("ewc", protocol="smoke", schedule=short)]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1], name="b")
    tables = [
        sign(scores, table, "latex", "t")
        for _, scores, table in build.tables_of(build.read(tmp_path), "cw3")
    ]
    assert tables_in("\n".join(tables)) == [tables[0], "\n" + tables[1]]
    for text in tables_in("\n".join(tables)):
        study = build.read(tmp_path, recipe_options(recipe_of(text)))
        assert verify(text, study).differences == []


def test_a_protocol_that_counts_the_last_step_is_verified_so(tmp_path: Path):
    last = small("ewc", env=MetaWorldConfig(success="last"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[last], seeds=[0, 1])
    for file in tmp_path.glob("segments/*/evals.csv"):
        evals = pd.read_csv(file)
        evals.assign(v3_last=evals["successes"] // 2).to_csv(file, index=False)
    text = exported(build.read(tmp_path), "csv")
    study = build.read(tmp_path, recipe_options(recipe_of(text)))
    assert verify(text, study).differences == []


def test_blocks_are_told_apart_whatever_their_titles_hold():
    """A title that LaTeX writes with braces does not end at the first of them."""
    block = [r"\midrule", "1 & $0.10$ \\\\", r"\midrule[\heavyrulewidth]"]
    lines = [
        line
        for title in ("a", r"a \textless{} b")
        for line in (
            rf"\multicolumn{{2}}{{c}}{{\textbf{{{title}}}}} \\[0.5mm]",
            r"S & M \\",
            *block,
        )
    ]
    assert len(READERS["latex"]("\n".join(lines))) == 2


def test_columns_of_one_title_are_all_compared():
    """Two settings may have one title; a wide table has its columns on several pages."""
    csv = "block,row,column,value\nA,1,EWC,0.1\nA,1,EWC,0.2\nA,1,L2,0.3\n"
    page = "*A*\n\n| S | EWC | EWC | L2 |\n| - | - | - | - |\n| 1 | 0.1 | 0.2 | 0.3 |\n"
    pages = "*A*\n\n| S | EWC |\n| - | - |\n| 1 | 0.1 |\n\n*A*\n\n| S | EWC | L2 |\n| - | - | - |\n"
    pages += "| 1 | 0.2 | 0.3 |\n"
    cells = {("A", "1", 0, "EWC"): "0.1", ("A", "1", 1, "EWC"): "0.2", ("A", "1", 0, "L2"): "0.3"}
    assert READERS["csv"](csv) == cells
    assert READERS["markdown"](page) == READERS["markdown"](pages) == cells

"""Every number can be traced to its seeds, folders and commands."""

import json
import re
from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.board.site import Entry, render
from cwbench.reports.page.runs import runs_section
from cwbench.reports.tables.formats import number
from cwbench.spec.segment import RECORD_KEYS


@pytest.fixture
def scores(tmp_path: Path) -> Scores:
    write_results(
        tmp_path,
        sequence_names=["cw3-1", "cw3-2"],
        settings=[small("ewc"), small("ewc", coef=1.0)],
        seeds=[3, 4],
    )
    study = build.read(tmp_path)
    return Scores(study, study.protocols[0])


def test_a_setting_has_a_fold_and_a_sequence_a_table_of_seeds(scores: Scores) -> None:
    shown = runs_section(scores, None)
    assert re.findall(r'class="chip">(\d+ of \d+) runs ended', shown) == ["4 of 4"] * 2
    anchors = re.findall(r'id="([gs]-[^"]*)"', shown)
    assert len(anchors) == len(set(anchors)) == 2 + 4
    assert {f"g-{group.key}" for group in scores.study.groups} < set(anchors)
    [group, *_] = scores.study.groups
    for value in scores.per_run(group, "average_performance"):
        assert f"<td>{number(value)}</td>" in shown


def test_folders_are_links_where_a_way_leads_to_them(scores: Scores) -> None:
    folder = scores.study.groups[0].runs[0].folders[0]
    assert f'href="../my%20results/segments/{folder}/"' in runs_section(scores, "../my results")
    plain = runs_section(scores, None)
    assert "href" not in plain and f'<span class="path">{folder}</span>' in plain


def test_the_command_that_made_a_run_is_shown(scores: Scores) -> None:
    assert "cwbench run --method ewc --seq cw3-1 --seeds 3" in runs_section(scores, None)


def test_records_that_name_neither_command_nor_machine_leave_them_out(tmp_path: Path) -> None:
    """Next to others that do."""
    settings = [small("ewc"), small("packnet")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    for file in tmp_path.glob("segments/packnet-*/segment.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps({key: record[key] for key in ("id", *RECORD_KEYS)}))
    study = build.read(tmp_path)
    shown = runs_section(Scores(study, study.protocols[0]), None)
    assert shown.count("made up") == 1  # EWC's machine
    assert set(re.findall("<code>(.*?)</code>", shown)) == {
        "cwbench run --method ewc --seq cw3-1 --seeds 0"
    }
    board = render([Entry("mine", "A", study)])
    assert ">0.1.0 0123abc<" in board and "<td>?<" in board

"""Counters of segments, summed over what was trained."""

from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables.resources import COLUMNS, count_text, resources
from cwbench.reports.tables.standings import memory
from cwbench.store.results import SegmentFolder


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (999, "count", "999"),
        (1_234_567, "count", "1.23M"),
        (116_000_000, "bytes", "116 MB"),
        (5_400, "seconds", "1.50 h"),
    ],
)
def test_counts_have_three_digits(value: float, unit: str, text: str) -> None:
    assert count_text(value, unit) == text


def test_a_shared_beginning_is_counted_once(tmp_path: Path) -> None:
    """Both pairs start with the same task: three segments of 10,000 steps, not four."""
    pairs = ["pair-0-1", "pair-0-2"]
    write_results(tmp_path, sequence_names=pairs, settings=[small("ewc")], seeds=[0])
    study = build.read(tmp_path)
    [block] = resources(Scores(study, study.protocols[0]), "pairs")
    [(title, cells)] = block.rows
    texts = dict(zip(block.columns, (cell.text for cell in cells), strict=True))
    assert (title, texts["Runs ended"]) == ("EWC", "2 of 2")
    assert texts["Training steps"] == "30k"
    assert texts["Wall time"] == count_text(30, "seconds")
    amounts = dict(zip(block.columns, (cell.amount for cell in cells), strict=True))
    assert amounts["Training steps"] == 30_000 and amounts["Wall time"] == 30
    assert texts["Parameters"] == "800k" and set(COLUMNS) < set(texts)  # the largest, not the sum


def test_the_largest_memory_is_shown_and_weighs_all_its_parts(tmp_path: Path) -> None:
    """Of three segments; parameters are four bytes each."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    study = build.read(tmp_path)
    for number, segment in enumerate(study.segments.values(), 1):
        counted = {"replay_bytes": number, "method_bytes": 10 * number, "parameters": 100 * number}
        segment["status"]["resources"] |= counted
    scores = Scores(study, study.protocols[0])
    [block] = resources(scores, "cw3")
    [(_, cells)] = block.rows
    amounts = dict(zip(block.columns, (cell.amount for cell in cells), strict=True))
    assert amounts["Replay, largest"] == 3 and amounts["Method's own, largest"] == 30
    [setting] = scores.settings("cw3")
    assert memory(scores, setting) == 3 + 30 + 4 * 300


def test_wall_times_of_a_table_have_one_unit(tmp_path: Path) -> None:
    """30 s of EWC are 0.5 min alone, and in hours next to two hours of RECALL."""

    def shown(*methods: str) -> list[str]:
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=map(small, methods), seeds=[0], name="b"
        )
        for file in tmp_path.glob("segments/recall-*"):
            SegmentFolder(file).set_status("done", seconds=2400.0)
        study = build.read(tmp_path)
        [block] = resources(Scores(study, study.protocols[0]), "cw3")
        return [cells[-1].text for _, cells in block.rows]

    assert shown("ewc") == ["0.5 min"]
    assert shown("ewc", "recall") == ["0.01 h", "2.00 h"]


def test_what_no_segment_counted_has_no_column(tmp_path: Path) -> None:
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    study = build.read(tmp_path)
    for segment in study.segments.values():
        del segment["status"]["resources"]["method_bytes"]
    [block] = resources(Scores(study, study.protocols[0]), "cw3")
    counted = [title for title in COLUMNS if title != "Method's own, largest"]
    assert block.columns == ("Runs ended", *counted, "Wall time")

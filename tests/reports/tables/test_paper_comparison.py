"""Published cells next to ours."""

from pathlib import Path

from sample_results import Setting, small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.intervals import Estimate
from cwbench.reports.analysis.scores import Score, Scores
from cwbench.reports.analysis.study import Options, Study
from cwbench.reports.tables import paper_comparison, paper_numbers
from cwbench.reports.tables.model import Block, Cell
from cwbench.spec.config import MetaWorldConfig


def test_a_protocol_difference_is_named(study: Study):
    scores = Scores(study, study.protocols[0])
    assert paper_numbers.protocol_differences(scores.protocol, scores.window) == [
        "steps_per_task 10000 instead of 1000000",
        "eval_every 1000 instead of 20000",
        "window 2 instead of 10",
    ]
    cells = paper_comparison.stacked(scores, "cw3")[0].rows[0][1]
    assert all(cell.text.endswith("protocol differs") for cell in cells)


def test_the_caption_names_the_count_that_the_protocol_chose(tmp_path: Path):
    """Its numbers are counted so, and there is no published count to take its place."""
    last = small("ewc", env=MetaWorldConfig(success="last"))
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[last], seeds=[0])
    study = build.read(tmp_path)
    text = paper_comparison.environment(Scores(study, study.protocols[0]))
    assert "success by Meta-World 3's test at the last step (v3-last)" in text


def test_a_cell_shows_the_percentile_interval_as_published():
    ours = Score(Estimate(0.8, 0.1, 0.2, 0.3, 0.4, 0.78, 0.82, error=0.01, freedom=4), 5)
    cell = paper_numbers.Published("cw3", "1", "ewc", "performance", 0.81, 0.79, 0.83)
    shown = paper_comparison.compared(cell, [], ours, differs=False)
    assert shown.text == "0.81 / 0.80 [0.78, 0.82] agrees"


def test_groups_of_several_settings_have_no_common_score(study: Study):
    scores = Scores(study, study.protocols[0], resamples=50)
    found = [g for g in scores.groups("cw3") if (g.sequence, g.method) == ("cw3-1", "ewc")]
    found += [g for g in scores.groups("cw3") if (g.sequence, g.method) == ("cw3-2", "recall")]
    score = paper_comparison.score_of(scores, found, "average_performance", 2)
    assert score.why == "several settings"


def test_every_published_cell_is_shown_next_to_ours(tmp_path: Path):
    settings = [Setting("recall"), Setting("ewc")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    study = build.read(tmp_path)
    scores = Scores(study, study.protocols[0])
    assert paper_numbers.protocol_differences(scores.protocol, scores.window) == []
    blocks = paper_comparison.stacked(scores, "cw3")
    cells = {
        (row, column): cell.text
        for row, line in blocks[0].rows
        for column, cell in zip(blocks[0].columns, line, strict=True)
    }
    assert len(cells) == 9 * 6
    assert cells["1", "RECALL"].startswith("0.90 / 0.")
    assert not cells["1", "RECALL"].endswith("of ours")
    assert cells["2", "RECALL"] == "0.92 / – no number of ours"
    assert cells["mean", "RECALL"] == "0.92 / – no number of ours"


def wide_and_narrow(root: Path) -> Scores:
    """RECALL as published on CW3-1 to 4, with another width on CW3-4 to 8, both labelled alike."""
    for width, numbers in ((256, range(1, 5)), (64, range(4, 9))):
        one = Setting("recall", schedule={"width": width})
        sequences = [f"cw3-{number}" for number in numbers]
        write_results(root, sequence_names=sequences, settings=[one], seeds=[0, 1], name=str(width))
    study = build.read(root)
    assert {group.label for group in study.groups} == {"recall"}  # as older versions had it
    return Scores(study, study.protocols[0])


def test_only_default_options_stand_next_to_published_numbers(tmp_path: Path):
    """Neither alone nor in the mean; the other setting on CW3-4 does not hide the default."""
    scores = wide_and_narrow(tmp_path)
    rows = dict(paper_comparison.stacked(scores, "cw3")[0].rows)
    texts = {
        row: cells[paper_comparison.METHODS.index("recall")].text for row, cells in rows.items()
    }
    empty = {row for row, text in texts.items() if text.endswith("– no number of ours")}
    assert empty == {"5", "6", "7", "8", "mean"}
    [one] = paper_comparison.comparisons(scores)
    assert "Not compared, since their options are others: RECALL with width=64." in one.caption


def test_only_cells_with_a_counterpart_are_shown_unless_asked(tmp_path: Path, shipped: Path):
    results, settings = tmp_path / "results", [Setting("recall"), Setting("ewc")]
    write_results(results, sequence_names=["cw3-1"], settings=settings, seeds=range(2))

    def cells(options: Options) -> list[str]:
        [(_, _, table)] = build.tables_of(build.read(results, options), "paper-cw3")
        return [cell.text for block in table.blocks for _, row in block.rows for cell in row]

    few, every = cells(Options()), cells(Options(all_cells=True))
    assert len(every) == 3 * 9 * 6
    assert len(few) == 2 * 2  # two metrics have numbers: transfer lacks a reference
    assert all(text in every and not text.endswith("no number of ours") for text in few)


def test_the_caption_says_why_there_is_no_forward_transfer(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    captions = []
    for _ in range(2):
        study = build.read(tmp_path)
        [one] = paper_comparison.comparisons(Scores(study, study.protocols[0]))
        captions.append(one.caption)
        write_results(
            tmp_path,
            sequence_names=["single-push", "single-window-close", "single-hammer"],
            settings=[small("finetuning")],
            seeds=[0],
            name="reference",
        )
    why = "no single-task reference for hammer, push, window-close"
    assert captions[0].endswith(f" Forward transfer has no number of ours: {why}.")
    assert "Forward transfer" not in captions[1]


def test_the_summary_counts_verdicts():
    texts = ["0.1 / 0.1 agrees", "0.1 / 0.5 differs", "0.1 / 0.2 cannot tell at this n"]
    texts += ["0.1 / 0.2 protocol differs", "0.1 / – no number of ours"]
    block = Block("", "", ("a",) * 5, (("row", tuple(Cell(text=text) for text in texts)),))
    assert paper_comparison.overall([block]) == (
        "Of 4 published cells with a number of ours: 1 agree, 1 differ, 1 cannot tell at this "
        "number of seeds, 1 were measured under another protocol, 0 are impossible as published."
    )


def test_captions_name_the_environment(study: Study):
    [one] = paper_comparison.comparisons(Scores(study, study.protocols[0]))
    text = one.caption
    assert "metaworld 3.1.1, mujoco 3.3.0 with its physics" in text
    assert "success by Meta-World 3's test at any step (v3-any)" in text
    assert "Published numbers are of Meta-World V1" in text
    assert "Intervals: 90 % percentile bootstrap over seeds, as published." in text
    assert "Not compared" not in text

"""Published cells of the studies next to runs that real commands ask for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_results import small, write_results, write_runs

from cwbench import sequences
from cwbench.experiment.build import load_method, runs_of
from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.tables import paper_comparison, paper_studies
from cwbench.reports.tables.model import Block


def add(root: Path, name: str, sequence: str, unshared: Sequence[str] = (), **given: Any) -> None:
    method, entry = load_method(name)
    wanted = [sequences.get(sequence)]
    runs = runs_of(
        name, method, entry, "paper", given, wanted=wanted, seeds=[0, 1], unshared=unshared
    )
    write_runs(root, runs, entry.method.preset)


def scores_of(root: Path) -> Scores:
    study = build.read(root)
    return Scores(study, study.protocols[0])


def filled(blocks: tuple[Block, ...]) -> set[str]:
    """Rows in which a number of ours stands."""
    found = paper_comparison.with_counterpart(blocks)
    return {row for block in found for row, _ in block.rows}


def test_studies_are_found_by_their_options(tmp_path: Path):
    """The offline row of Perfect Memory on pair (8,2) is the default, online is not run."""
    pair = ["pair-8-2"]
    write_results(tmp_path, sequence_names=pair, settings=[small("perfect_memory")], seeds=[0, 1])
    study = build.read(tmp_path)
    [block] = paper_studies.replay(Scores(study, study.protocols[0]))
    row = dict(block.rows)["(8,2)"]
    texts = [cell.text for cell in row]
    assert all(text.endswith("] protocol differs") for text in texts[:2])
    assert all(text.endswith(" – no number of ours") for text in texts[2:])
    assert [text.split(" ")[0] for text in texts] == ["0.75", "0.19", "0.94", "-0.07"]
    [group] = study.groups  # ours: the first task at the end of the run, and what it lost
    first = group.success[:, 1, -2:, 0].mean(1)
    lost = group.success[:, 0, -2:, 0].mean(1) - first
    ours = [f"{values.mean() + 1e-9:.2f}" for values in (first, lost)]
    assert [text.split(" ")[2] for text in texts[:2]] == ours


@pytest.mark.parametrize(
    ("method", "given", "row"),
    [
        ("recall", {}, {"10"}),
        ("recall", {"lambda_": 0.01}, {"0.01"}),
        ("recall", {"lambda_": 0.1, "width": 64}, set()),
        ("recall-none", {}, set()),
        ("recall-pairs", {}, set()),
        ("recall", {"beta": 1e-3}, set()),
        ("recall", {"batch_size": 64}, set()),
    ],
)
def test_only_the_weight_may_differ(method: str, given: Any, row: set[str], tmp_path: Path):
    add(tmp_path, method, "cw6-1", **given)
    scores = scores_of(tmp_path)
    assert filled(paper_studies.weights(scores)) == row
    [one] = paper_studies.comparisons(scores)
    assert ("Not compared" in one.caption) == (not row)


def test_only_the_mode_of_replay_may_differ(tmp_path: Path):
    """On pair (1,3) nothing is published of a small memory."""
    add(tmp_path, "pm", "pair-1-3", memory=1000)
    add(tmp_path, "pm", "pair-1-4", replay_mode="online")
    add(tmp_path, "pm", "pair-2-2", replay_mode="online", lr=1e-4)
    add(tmp_path, "pm", "pair-2-3")
    add(tmp_path, "pm", "pair-2-3", ["actor"])
    [block] = paper_comparison.with_counterpart(paper_studies.replay(scores_of(tmp_path)))
    assert [row for row, _ in block.rows] == ["(1,4)", "(2,3)"]
    known = [[paper_comparison.has_number(cell) for cell in cells] for _, cells in block.rows]
    assert known == [[False, False, True, True], [True, True, False, False]]


def test_only_sharing_may_differ(tmp_path: Path):
    add(tmp_path, "pm", "pair-5-0", ["critic"])
    add(tmp_path, "pm", "pair-5-0", ["actor"], replay_mode="online")
    add(tmp_path, "pm", "pair-5-0", actor_head_layers=2)
    add(tmp_path, "pm", "pair-5-0", memory=1000)
    assert filled(paper_studies.sharing(scores_of(tmp_path))) == {"shared actor, unshared critic"}
    add(tmp_path, "pm", "pair-5-0")
    add(tmp_path, "pm", "pair-5-0", actor_head_layers=4, critic_head_layers=4)  # --unshared
    assert filled(paper_studies.sharing(scores_of(tmp_path))) == {
        "shared actor, shared critic",
        "shared actor, unshared critic",
        "unshared actor, unshared critic",
    }


def test_the_releases_command_for_pairs_has_a_row_where_it_was_run(tmp_path: Path):
    add(tmp_path, "recall", "pair-1-3")
    [block] = paper_studies.pair_averages(scores_of(tmp_path))
    assert [row for row, _ in block.rows] == ["PM", "RECALL"]
    add(tmp_path, "recall-pairs", "pair-1-3")
    add(tmp_path, "recall-none", "pair-1-3")
    scores = scores_of(tmp_path)
    [block] = paper_studies.pair_averages(scores)
    assert [row for row, _ in block.rows] == ["PM", "RECALL", "RECALL-pairs"]
    [pairs] = [one for one in paper_studies.comparisons(scores) if one.name == "paper-pairs"]
    assert pairs.caption.endswith("since their options are others: RECALL-none.")


def test_the_papers_counts_of_pairs_stand_next_to_ours(tmp_path: Path):
    """Of all hundred pairs; ours are counted here a second time."""
    names = [f"pair-{first}-{second}" for first in range(10) for second in range(10)]
    short = {"steps_per_task": 1000, "eval_every": 500}
    settings = [small("perfect_memory", schedule=short)]
    write_results(tmp_path, sequence_names=names, settings=settings, seeds=[0])
    scores = scores_of(tmp_path)
    [block] = paper_studies.pair_averages(scores)
    rows = {name: dict(zip(block.columns, cells, strict=True)) for name, cells in block.rows}
    ends = [group.success[0, :, -1] for group in scores.study.groups]  # [N, N] each
    second, lost = np.array([(end[1, 1], end[0, 0] - end[1, 0]) for end in ends]).T
    counts = [(second == 0).sum(), ((second > 0) & (second < 0.5)).sum(), (second < 0.5).sum()]
    ours = [*counts, (lost > 0.1 + 1e-9).sum()]
    published = {"PM": (31, 25, 56, 13), "RECALL": ("–", "–", 4, 0)}
    for name, theirs in published.items():
        shown = [rows[name][column].text for column in paper_studies.PAIR_COUNTS]
        mine = ours if name == "PM" else ["–"] * 4
        assert shown == [f"{a} / {b}" for a, b in zip(theirs, mine, strict=True)]
    assert rows["PM"]["Largest forgetting"].text == f"0.32 / {lost.max():.2f}"
    assert rows["RECALL"]["Largest forgetting"].text == "– / –"

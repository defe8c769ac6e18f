"""The board's page."""

import re
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.board.site import Entry, _versions, render

SHIPPED = Path(__file__).resolve().parents[3] / "docs" / "results" / "cw3-1.tar.gz"


def test_rows_show_what_the_tables_show(tmp_path: Path) -> None:
    """Best first; the value is the mean of the last five evaluations of every task."""
    with tarfile.open(SHIPPED) as packed:
        packed.extractall(tmp_path, filter="data")
    page = render([Entry("cw3-1", "A & B", build.read(tmp_path / "cw3-1"))])
    assert '<th scope="col">Forgetting</th>' in page
    table = page.split("<tbody>")[1]
    assert table.index("RECALL") < table.index("ClonEx") < table.index("Fine-tuning")
    ends = [
        pd.read_csv(file).groupby("eval_position")["successes"].apply(lambda x: x[-5:].mean() / 10)
        for file in tmp_path.glob("cw3-1/segments/recall-3-*/evals.csv")
    ]
    assert len(ends) == 3
    link = '<a href="cw3-1/index.html">A &amp; B</a>'
    assert f"<td>RECALL</td><td>{link}</td><td>{np.mean(ends):.2f} <small>[0.91, 0.94]" in table
    assert "<td>2.25M</td>" in table  # three seeds of three tasks of 250,000 steps


def test_the_pairs_of_a_contribution_are_one_row(tmp_path: Path) -> None:
    """Sets of different pairs are not in one table: their means do not compare."""
    for name, sequences in (("a", ["pair-0-1", "pair-0-2"]), ("b", ["pair-0-1", "pair-0-9"])):
        write_results(tmp_path / name, sequence_names=sequences, settings=[small("ewc")], seeds=[0])
    same, other = (build.read(tmp_path / name) for name in "ab")
    page = render([Entry("a", "A", same), Entry("again", "A", same), Entry("b", "B", other)])
    tables = re.findall("<tbody>.*?</tbody>", page)
    assert [table.count("<tr>") for table in tables] == [2, 1]
    scores = Scores(same, same.protocols[0])
    mean = np.mean([scores.score([group], "average_performance").value for group in same.groups])
    assert f"<td>{mean:.2f}</td>" in tables[0]
    assert "<td>30k</td>" in tables[0]  # the first task, which both share, and two second ones
    heads = re.findall("<thead>.*?</thead>", page)  # pair tables have the first task's forgetting
    assert all(">Forgetting (mean of both tasks)<" in head for head in heads)
    assert "<h2>2 pairs of tasks" in page and "first hammer; second push-wall, faucet-close" in page


def test_a_row_of_pairs_has_as_many_seeds_as_its_pair_with_the_fewest(tmp_path: Path) -> None:
    for sequence, seeds in (("pair-0-1", [0, 1, 2]), ("pair-0-2", [0, 1])):
        named: dict[str, Any] = {"seeds": seeds, "name": sequence}
        write_results(tmp_path, sequence_names=[sequence], settings=[small("ewc")], **named)
    page = render([Entry("a", "A", build.read(tmp_path))])
    [row] = re.findall("<tbody><tr>(.*?)</tr></tbody>", page)
    assert re.findall("<td>([^<]*)</td>", row)[-4] == "2"  # seeds, steps, hours, version


def test_a_row_names_each_version_of_cwbench_once() -> None:
    records = [
        {"versions": {"cwbench": version, "commit": commit}}
        for version, commit in (("0.3", "c"), ("0.2", "b"), ("0.2", "a"), ("0.2", "b"))
    ]
    assert _versions([*records, {}]) == "0.2 a, b; 0.3 c; ?"


def test_versions_of_a_method_have_rows_of_their_own(tmp_path: Path) -> None:
    settings = [small("mine", source="0123456789ab"), small("mine", source="ba9876543210")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0, 1])
    page = render([Entry("a", "A", build.read(tmp_path))])
    rows = re.findall("<tr><td>(.*?)</td>", page)
    assert sorted(rows) == ["Mine (0123)", "Mine (ba98)"]


def test_sequences_of_one_name_with_different_tasks_are_separate_tables(tmp_path: Path) -> None:
    entries = []
    for name, sequence in (("a", "cw3-1"), ("b", "cw3-2"), ("c", "cw3-1")):
        write_results(
            tmp_path / name, sequence_names=[sequence], settings=[small("ewc")], seeds=[0]
        )
        study = build.read(tmp_path / name)
        study.groups = [replace(group, sequence="mine") for group in study.groups]
        entries.append(Entry(name, name, study))
    page = render(entries)
    tables = re.findall("<tbody>.*?</tbody>", page)
    assert sorted(table.count("<tr>") for table in tables) == [1, 2]
    assert len(set(re.findall('<section id="(.*?)"', page))) == 2


def test_tasks_of_one_name_with_different_definitions_are_separate_tables(tmp_path: Path) -> None:
    """Neither the key of a protocol nor the names of tasks tell these apart."""
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    study, entries = build.read(tmp_path), []
    for name, gravity in (("a", 1.0), ("b", 2.0), ("c", 1.0)):
        defined = {task: {"gravity": gravity} for task in study.groups[0].tasks}
        protocol = replace(study.protocols[0], definitions=defined)
        groups = [replace(group, protocol=protocol) for group in study.groups]
        entries.append(Entry(name, name, replace(study, groups=groups)))
    tables = re.findall("<tbody>.*?</tbody>", render(entries))
    assert sorted(table.count("<tr>") for table in tables) == [1, 2]


def test_rows_link_to_the_notes_of_their_contribution(tmp_path: Path) -> None:
    for method, seeds in (("ewc", [0]), ("packnet", [0, 1])):
        settings = [small(method)]
        write_results(
            tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=seeds, name=method
        )
    page = render([Entry("mine", "A", build.read(tmp_path))])
    assert page.count('<a href="#of-mine"><small>1 note</small></a>') == 2
    noted = page.split('<li id="of-mine">')[1]
    assert "<li>EWC: seed 1 is missing on cw3-1; others have it there</li>" in noted


def test_the_cost_of_a_row_includes_its_experts(tmp_path: Path) -> None:
    settings = [small("ewc"), small("finetuning")]
    for setting, sequences in zip(settings, (["pair-0-1"], ["single-push-wall"]), strict=True):
        write_results(
            tmp_path, sequence_names=sequences, settings=[setting], seeds=[0], name=setting.method
        )
    study = build.read(tmp_path)
    [alone] = [group.runs[0] for group in study.groups if group.method == "finetuning"]
    [pair] = [group.runs[0] for group in study.groups if group.method == "ewc"]
    study.segments[pair.segments[1]]["expert"] = alone.segments[0]
    assert "<td>30k</td><td>0.01</td>" in render([Entry("a", "A", study)])  # 30 s

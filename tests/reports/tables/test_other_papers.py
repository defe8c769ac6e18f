"""Numbers of other papers, and which of them have a counterpart."""

from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.tables import catalog, other_papers


def test_other_papers(tmp_path: Path):
    assert other_papers.published("continual-world")[
        "cw20", "packnet", "average_performance"
    ].value == pytest.approx(0.80, abs=0.01)
    assert {cell.seeds for cell in other_papers.published("continual-world").values()} == {20}
    cka = other_papers.published("cka-rl")["cw20", "packnet", "forward_transfer"]
    assert cka.value == -0.6721
    copies = other_papers.published("cka-rl")["cw20", "finetuning_n", "average_performance"]
    assert copies.value == 0.3774
    write_results(tmp_path, sequence_names=["cw10"], settings=[small("packnet")], seeds=range(2))
    study = build.read(tmp_path)
    names = {
        source: [table.name for _, _, table in build.tables_of(study, compare=source)]
        for source in catalog.SOURCES
    }
    assert "clonex" in names["clonex"]  # it has CW10
    assert "continual-world" not in names["continual-world"]  # it has CW20 only
    [(_, _, table)] = build.tables_of(study, "clonex")
    [(method, cells)] = table.blocks[0].rows
    assert method == "PackNet" and cells[0].text.endswith("protocol differs")


def test_captions_say_what_each_paper_published(tmp_path: Path):
    """CKA-RL ran Meta-World v2 and gives neither intervals nor a number of seeds."""
    settings = [small("packnet"), small("packnet", coef=1.0)]
    write_results(tmp_path, sequence_names=["cw20"], settings=settings, seeds=range(2))
    study = build.read(tmp_path)
    texts = {}
    for name in ("cka-rl", "continual-world"):
        [(_, _, table)] = build.tables_of(study, name)
        texts[name] = table.caption
        assert ("as published" in table.brackets) == (name != "cka-rl")
    cka, first = texts.values()
    assert "numbers are of Meta-World v2, ours of metaworld 3.1.1" in cka and "V1" not in cka
    assert "published are neither intervals nor the number of seeds" in cka
    assert "as published" not in cka and "its own is v2 rewards, 39 observations" in cka
    assert "numbers are of Meta-World V1" in first and "over seeds, as published." in first
    for text in texts.values():
        assert "Not compared, since their options are others: PackNet coef=1." in text

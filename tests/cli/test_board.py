"""How `cwbench board` names contributions; tests/reports/board test what it refuses."""

from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.cli import main
from cwbench.cli.board import _addressed, _parse


def test_a_contribution_is_named_after_its_folder_or_archive() -> None:
    assert _parse("A & B=of/cw3-1.tar.gz") == ("cw3-1", "A & B", Path("of/cw3-1.tar.gz"))
    assert _parse("mine") == ("mine", "mine", Path("mine"))


def test_contributors_may_use_the_same_name() -> None:
    given = ["Ada L.=a/study.tar.gz", "Bob=b/study", "Bob=b/other"]
    names = [name for name, _, _ in _addressed([_parse(text) for text in given])]
    assert names == ["study-Ada-L.", "study-Bob", "other"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["A=one/cw3", "A=two/cw3"], "two contributions of A are called cw3; rename"),
        (["one/cw3", "two/cw3"], "two contributions of cw3 are called cw3; rename"),
        (["=one/cw3"], "=one/cw3: no contributor before =; write"),
        ([" =one/cw3"], "no contributor before ="),
    ],
)
def test_contributions_must_differ_in_name_or_contributor(
    capsys: pytest.CaptureFixture[str], given: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["board", "--check", *given])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_faults_are_counted_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made-up runs are incomplete."""
    results = tmp_path / "made-up"
    write_results(results, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.5)
    with pytest.raises(SystemExit) as ended:
        main(["board", str(results), "--out", str(tmp_path / "site")])
    assert ended.value.code == 1
    first, *faults = capsys.readouterr().out.splitlines()
    assert first == f"made-up: {len(faults)} faults" and len(faults) > 1
    # The first task is done, the second half way.
    [late] = [fault for fault in faults if "not finished (running)" in fault]
    assert late.startswith("  segments/ewc-2-") and late.endswith("made the runs continues them")
    assert not (tmp_path / "site").exists()

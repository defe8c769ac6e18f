"""`cwbench pairwise`: how many segments, what is refused, what it leaves."""

import re
from pathlib import Path

import pytest

from cwbench.cli import main
from cwbench.store.runs import load_runs

pytestmark = pytest.mark.commands
HEAD = ["Method", "First task", "Second task", "Forgetting", "Second = 0"]


def test_plan_shares_first_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["pairwise", "--protocol", "smoke", "--threads", "1", "--dry-run"]
    main([*args, "--results", str(tmp_path / "results")])
    assert "200 runs = 220 segments" in capsys.readouterr().out  # two methods, 10 + 100 each
    main([*args, "--tasks", "2,5,8", "--seeds", "0-1", "--results", str(tmp_path / "results")])
    assert "36 runs = 48 segments" in capsys.readouterr().out  # 2 methods x 2 seeds x (3 + 9)
    assert not list(tmp_path.iterdir())


def test_one_pair_ends_with_its_matrix_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the live page: it is written next to the results when training ends."""
    results = tmp_path / "results"
    args = ["pairwise", "--tasks", "8", "--method", "finetuning", "--protocol", "smoke"]
    main([*args, "--threads", "1", "--results", str(results)])
    assert (load_runs(results).runs["state"] == "done").all()
    assert list((results / "report" / "figures").glob("pairs-finetuning.*"))
    assert "window-close" in (results / "report" / "index.html").read_text()
    said = capsys.readouterr().out
    head, row = said.splitlines()[-2:]  # one seed of 600 steps ends at 0
    assert "page:" in said and "pairs, protocol smoke:" in said
    assert re.split("  +", head.strip())[:5] == HEAD
    assert re.split("  +", row.strip())[:5] == ["Fine-tuning", "0.00", "0.00", "0.00", "1"]
    main([*args, "--threads", "1", "--results", str(results)])
    assert "nothing to train" in capsys.readouterr().out


def test_an_option_of_run_is_answered_with_the_command_that_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["--protocol", "smoke", "--threads", "1", "--dry-run", "--results", str(tmp_path / "r")]
    with pytest.raises(SystemExit) as ended:
        main(["pairwise", "--steps-per-task", "300", *args])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert "--steps-per-task is an option of `cwbench run`" in line and "'pair-*-*'" in line
    with pytest.raises(SystemExit):
        main(["pairwise", "--sedes", "3", *args])
    assert "did you mean '--seeds'?" in capsys.readouterr().err
    main(["pairwise", "--method", "finetuning", *args])
    pairs = capsys.readouterr().out.splitlines()[0]
    main(["run", "--method", "finetuning", "--seq", "pair-*-*", *args])
    assert capsys.readouterr().out.splitlines()[0] == pairs


def test_pairs_of_another_suite(tmp_path: Path) -> None:
    """The matrices have the sequence's tasks; all pairs share settings, so one matrix has all."""
    results = tmp_path / "results"
    args = ["pairwise", "--seq", "point3", "--tasks", "0,2", "--method", "finetuning"]
    main([*args, "--protocol", "smoke", "--threads", "1", "--results", str(results)])
    assert len(load_runs(results).runs) == 4
    assert (results / "report" / "figures" / "pairs-point3-finetuning.pdf").is_file()
    page = (results / "report" / "index.html").read_text()
    assert "Fine-tuning, pairs of tasks of point3" in page and "4 pairs ended" in page
    table = (results / "report" / "tables" / "pairs.md").read_text()
    assert "environment pointmass, horizon 25, score by the tasks' own rules" in table

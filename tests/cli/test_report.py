"""The commands, as a user types them."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.cli import main
from cwbench.cli.report import write_report_into
from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a `results` folder."""
    monkeypatch.chdir(tmp_path)
    settings = [small("ewc"), small("recall")]
    write_results(tmp_path / "results", sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    return tmp_path


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Exit code 2 and one line on the error stream."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_without_arguments_it_reads_results_and_writes_report(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    planned = build.figure_plan
    only = {"cw3-average"}
    monkeypatch.setattr(
        build, "figure_plan", lambda *given: [one for one in planned(*given) if one.name in only]
    )
    main(["report", "--compare", "paper", "--png"])
    assert capsys.readouterr().out.splitlines()[-1] == "results/report/index.html"
    out = folder / "results" / "report"
    files = {path.relative_to(out).as_posix() for path in out.rglob("*/*")}
    assert {"tables/cw3.tex", "tables/cw3-t.tex", "tables/cw3.md", "tables/cw3.csv"} <= files
    assert {"figures/cw3-average.pdf", "figures/cw3-average.png"} <= files
    page = (out / "index.html").read_text()
    assert "Impossible among all published numbers" in page and "protocol differs" in page


def test_a_bug_is_not_shown_as_a_mistake_of_the_user(folder: Path, monkeypatch: pytest.MonkeyPatch):
    main(["report", "--table", "cw3", "results", "cw3.csv"])

    def broken(*_: object) -> None:
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(build, "arrange", broken)
    for command in (["report"], ["verify", "cw3.csv"]):
        with pytest.raises(ValueError, match="broadcast"):
            main(command)


@pytest.mark.commands
def test_every_figure_is_drawn_by_further_processes(folder: Path):
    done = subprocess.run(
        [sys.executable, "-m", "cwbench", "report", "--png"],
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "results/report/index.html"
    study, out = build.read(folder / "results"), folder / "results" / "report"
    planned = build.figure_plan([Scores(study, study.protocols[0])], out)
    files = [f.file.with_name(f.file.name + end) for f in planned for end in (".pdf", ".png")]
    assert len(planned) > 5 and all(file.stat().st_size for file in files)


def test_a_source_without_numbers_for_these_runs_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(build, "figure_plan", lambda *_: [])  # draw nothing
    main(["report", "--compare", "cka-rl"])
    assert "--compare cka-rl: none of its numbers has" in capsys.readouterr().out
    main(["report", "--compare", "paper"])
    assert "none of its numbers" not in capsys.readouterr().out


def test_one_table_goes_to_the_screen(folder: Path, capsys: pytest.CaptureFixture[str]):
    main(["report", "--table", "cw3", "--format", "latex", "-"])
    text = capsys.readouterr().out
    assert text.startswith(r"\begin{table}") and text.rstrip().endswith("}")
    assert not (folder / "results" / "report").exists()
    for arguments in (["results", "-"], ["results"], [], ["--results", "results"]):
        main(["report", "--table", "cw3", *arguments])
        assert capsys.readouterr().out == text


def test_one_table_goes_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]):
    main(["report", "results", "mine.md", "--table", "cw3", "--format", "markdown"])
    main(["verify", "mine.md"])
    assert capsys.readouterr().out == "equal: 6 cells\n"


def test_a_files_ending_is_its_format(folder: Path, capsys: pytest.CaptureFixture[str]):
    """Unless another is asked for; LaTeX where it says nothing."""
    for name, format, given in (
        ("mine.md", "markdown", []),
        ("mine.csv", "csv", []),
        ("mine.tex", "latex", []),
        ("mine.txt", "latex", []),
        ("mine.csv", "markdown", ["--format", "markdown"]),
    ):
        main(["report", "--table", "cw3", "--format", format])
        text = capsys.readouterr().out
        main(["report", "results", name, "--table", "cw3", *given])
        assert (folder / name).read_text() == text


def test_an_archive_is_read_like_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]):
    main(["merge", "results", "--into", "study.tar.gz"])
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    table = ["--table", "cw3", "--format", "csv"]
    texts = []
    for source in ("results", "study.tar.gz"):
        main(["report", source, *table])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and "RECALL" in texts[0]
    assert "give OUT, a folder for its report" in fails(capsys, "report", "study.tar.gz")
    Path("no.tar.gz").write_text("not packed")
    assert "no.tar.gz: cannot be unpacked" in fails(capsys, "report", "no.tar.gz", "out")
    Path("no.tar.gz").unlink()
    assert sorted(folder.rglob("*")) == before


def test_verify_reads_the_folder_that_a_table_is_in(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    """Else ./results; without that the option is named."""
    (folder / "results").rename(folder / "mine")
    main(["report", "mine", "mine/cw3.csv", "--table", "cw3"])
    main(["verify", "mine/cw3.csv"])
    assert "equal: " in capsys.readouterr().out
    (folder / "mine" / "cw3.csv").rename(folder / "cw3.csv")
    text = fails(capsys, "verify", "cw3.csv")
    assert "no results folder at 'results': give the one of cw3.csv with --results" in text
    assert "no results folder at 'none'" in fails(capsys, "verify", "cw3.csv", "--results", "none")


def test_verify_names_the_cell_and_fails(folder: Path, capsys: pytest.CaptureFixture[str]):
    main(["report", "results", "mine.csv", "--table", "cw3", "--format", "csv", "--window", "3"])
    file = folder / "mine.csv"
    main(["verify", "mine.csv", "--results", "results"])
    lines = file.read_text().splitlines()
    lines[1] = lines[1].replace(",0.", ",0.1", 1)
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(SystemExit) as stop:
        main(["verify", "mine.csv"])
    assert stop.value.code == 1
    assert "Average Performance, row 1, column EWC: the file has" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "nowhere"], "no results folder at 'nowhere'"),
        (["report", "--table", "cka-rl", "--compare", "cka-rl"], "none of its numbers has a coun"),
        (
            ["report", "--table", "paper-pairs"],
            "'paper-pairs': none of its numbers has a counterpart",
        ),
        (["report", "--table", "cw4"], "unknown table 'cw4'; did you mean 'cw3'?"),
        (["report", "--table", "cw3-comparison-transfer"], "'cw3-comparison-transfer' has no numb"),
        (["report", "--window", "11"], "a window of 11 evaluations is longer than a task"),
        (["report", "--against", "ewk"], "unknown method 'ewk'; did you mean 'ewc'?"),
        (["report", "--against", "ewc", "--method", "recall"], "--against ewc is left out by"),
        (["report", "--against", "EWC", "--method", "recall"], "--against EWC is left out by"),
        (["report", "--seq", "cw3-2"], "no run on sequence 'cw3-2'; these results have cw3-1"),
        (["report", "--method", "ewc (a=1, b=2)"], "no run of method 'ewc (a=1, b=2)'; these"),
        (["report", "--method", "ewc,pm"], "no run of method 'pm'; these results have ewc; recall"),
        (["report", "--protocol", "papers"], "no run under protocol 'papers'; these results have"),
        (["report", "--success", "v1-any"], "--success v1-any: evaluations of these runs were not"),
        (["report", "--success", "v2-any"], "'v2-any' is not one of 'v3-any', 'v3-last'"),
        (["report", "--level", "1.5"], "1.5 is too large"),
        (["report", "--window", "0"], "0 is too small"),
        (["report", "--format", "csv"], "need --table"),
        (["report", "a", "b", "c"], "too many arguments"),
        (["report", "--compare", "print"], "'print' is not one of 'paper', 'continual-world'"),
        (["verify", "results/experiments"], "results/experiments: not a results folder"),
        (["verify", "missing.tex"], "does not exist"),
    ],
)
def test_bad_input(folder: Path, capsys, arguments: list[str], words: str):
    before = sorted(folder.rglob("*"))
    assert words in fails(capsys, *arguments)
    assert sorted(folder.rglob("*")) == before


def test_a_folder_without_runs_or_of_a_newer_version_has_no_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "empty").mkdir()
    newer = folder / "newer" / "experiments" / "a.json"
    newer.parent.mkdir(parents=True)
    newer.write_text('{"schema": 99, "name": "a", "runs": []}')
    for name, words in (("empty", "holds no runs"), ("newer", "written by a newer cwbench")):
        assert words in fails(capsys, "report", name)
        assert not (folder / name / "report").exists()


def test_an_archive_without_runs_is_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "none" / "segments").mkdir(parents=True)
    with tarfile.open(folder / "none.tar.gz", "w:gz") as packed:
        packed.add("none")
    text = fails(capsys, "report", "none.tar.gz", "out")
    assert text.startswith("cwbench: none.tar.gz holds no runs")


def test_a_file_that_is_no_table(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "paper.tex").write_text("hello")
    assert "not a table that `cwbench report` wrote" in fails(capsys, "verify", "paper.tex")


def test_reports_are_light():
    """No training library is loaded, and matplotlib only for figures."""
    code = (
        "import sys, cwbench.reports.build, cwbench.cli.report;"
        "print([m for m in ('torch', 'metaworld', 'mujoco', 'matplotlib') if m in sys.modules])"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_damaged_record_of_an_experiment_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its segments are still there, so "holds no runs" alone would look like a loss."""
    [record] = (folder / "results" / "experiments").iterdir()
    record.write_text("")
    with pytest.raises(SystemExit) as stop:
        main(["report"])
    first, *_, last = capsys.readouterr().err.splitlines()
    assert stop.value.code == 1 and first == f"problem: experiments/{record.name}: empty"
    assert last.endswith("the command that trained its segments records them again")


def test_a_table_of_some_methods_can_be_verified(folder: Path, capsys: pytest.CaptureFixture[str]):
    """`recall` is its default options only."""
    settings = [small("recall", coef=3.0)]
    write_results(folder / "results", sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    main(["report", "results", "one.md", "--table", "cw3", "--method", "recall coef=3,EWC"])
    table = (folder / "one.md").read_text()
    heading = next(line for line in table.splitlines() if line.startswith("|"))
    assert "EWC" in heading and heading.count("RECALL") == 1 and "coef=3" in heading
    main(["verify", "one.md", "--results", "results"])
    assert "equal" in capsys.readouterr().out
    main(["report", "results", "default.md", "--table", "cw3", "--method", "recall"])
    assert "coef=3" not in (folder / "default.md").read_text()


@pytest.mark.parametrize("out", [[], ["results", "results/report"]])
def test_nothing_is_written_through_a_link(
    folder: Path, capsys: pytest.CaptureFixture[str], out: list[str]
):
    """In someone else's results folder a file of the report may be a link to one of yours."""
    precious = folder / "precious"
    precious.write_text("x")
    (folder / "results" / "report").mkdir()
    (folder / "results" / "report" / "checklist.md").symlink_to(precious)
    assert "checklist.md leads out of results" in fails(capsys, "report", *out)
    assert precious.read_text() == "x"


def test_a_report_that_cannot_be_written_names_the_command_for_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "my results"
    results.mkdir()
    (results / "report").symlink_to(tmp_path)
    assert write_report_into(results, quiet=True) is None
    advice = f"; `cwbench report '{results}' OUT` writes one elsewhere\n"
    assert capsys.readouterr().err.endswith(advice)

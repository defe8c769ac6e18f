"""What the board refuses, and why."""

import hashlib
import json
import re
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sample_results import change_experiment, small, write_results

from cwbench.cli import cli
from cwbench.reports.board.check import _grouped, _protocol_faults, _record_faults, _row_faults
from cwbench.reports.board.site import Entry, render
from cwbench.reports.build import read
from cwbench.store.files import checksum

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "docs" / "results" / "cw3-1.tar.gz"
CONTRIBUTIONS = (ROOT / "docs" / "results" / "contributions.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the shipped runs: RECALL with seed 0."""
    folder = tmp_path_factory.mktemp("one")
    with tarfile.open(SHIPPED) as packed:
        wanted = [
            entry
            for entry in packed
            if "/experiments/" in entry.name or re.search("/recall-.*-s0-", entry.name)
        ]
        packed.extractall(folder, wanted, filter="data")
    [experiment] = folder.glob("cw3-1/experiments/*.json")
    change_experiment(experiment, keep_one)
    return folder / "cw3-1"


def keep_one(experiment: dict[str, Any]) -> None:
    runs = experiment["runs"]
    experiment["runs"] = [run for run in runs if (run["method"], run["seed"]) == ("recall", 0)]


@pytest.fixture
def results(one_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(one_run, tmp_path / "cw3-1"))


def rewrite(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def check(results: Path | str) -> tuple[int, str]:
    made = CliRunner().invoke(cli, ["board", "--check", str(results)])
    return made.exit_code, made.output


@pytest.mark.slow
def test_the_site_has_a_page_and_a_report_of_each(results: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    made = CliRunner().invoke(cli, ["board", f"A & B={results}", "--out", str(site)])
    assert made.exit_code == 0, made.output
    assert 'href="cw3-1/index.html"' in (site / "index.html").read_text()
    assert (site / "cw3-1" / "index.html").is_file()


def test_equal_faults_are_one_line_with_the_first_segments() -> None:
    faults = [f"segments/s{n}: late" for n in range(5)]
    faults += ["segments/s1/evals.csv: cut", "segments/s2/evals.csv: cut", "segments/s3: odd", "x"]
    assert _grouped([*faults, "x"]) == [
        "late (5 segments: s0, s1, s2, ...)",
        "evals.csv: cut (2 segments: s1, s2)",
        "segments/s3: odd",
        "x",
    ]


def test_a_record_that_names_experts_is_as_training_wrote_it(tmp_path: Path) -> None:
    with tarfile.open(SHIPPED.with_name("point3.tar.gz")) as packed:
        wanted = [e for e in packed if re.search("/reset-distill-.*-s0-.*/segment.json", e.name)]
        packed.extractall(tmp_path, wanted, filter="data")
    records = [json.loads(file.read_text()) for file in tmp_path.rglob("segment.json")]
    assert len(records) == 3 and all(record["experts"] for record in records)
    for record in records:
        assert not list(_record_faults(record | {"status": {"state": "done"}}, tmp_path))


def segment_record(results: Path) -> Path:
    return next(results.glob("segments/recall-3-*/segment.json"))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda record: record.update(seed=9), "the record was changed"),
        (lambda record: record["versions"].update(commit=""), "names no commit"),
        (lambda record: record.update(source="0123456789ab"), "is not in sources/0123456789ab.py"),
        (lambda record: record.pop("network"), "without network"),
    ],
)
def test_a_changed_record_is_refused(
    results: Path, change: Callable[[dict[str, Any]], None], line: str
) -> None:
    rewrite(segment_record(results), change)
    code, said = check(results)
    assert code == 1 and line in said


def ask_under(results: Path, protocol: str) -> None:
    """Let the run be one of another protocol; its segments may have been trained under any."""
    [experiment] = results.glob("experiments/*.json")
    change_experiment(experiment, lambda record: record["runs"][0].update(protocol=protocol))


@pytest.mark.parametrize(
    ("protocol", "line"),
    [
        ("mine", "recall on cw3-1: unknown protocol 'mine'"),
        ("paper+1f3a9c", "recall on cw3-1: unknown protocol 'paper+1f3a9c'"),
    ],
)
def test_an_unknown_protocol_is_refused(results: Path, protocol: str, line: str) -> None:
    ask_under(results, protocol)
    code, said = check(results)
    assert code == 1 and line in said


def test_another_schedule_than_the_protocols_is_shown_in_the_title(results: Path) -> None:
    """Its runs share no table with those that have the protocol's own schedule."""
    ask_under(results, "paper")
    assert check(results) == (0, "cw3-1: accepted\n")
    page = render([Entry("cw3-1", "A", read(results))])
    assert "<small>paper, steps-per-task 250,000, eval-every 10,000 " in page


def test_runs_of_a_protocol_from_a_file_must_have_one_schedule(results: Path) -> None:
    """What the file says is not known; its mark says that it was one."""
    ask_under(results, "mylab+1f3a9c")
    assert check(results) == (0, "cw3-1: accepted\n")
    study = read(results)
    [first] = study.groups
    schedule = {**first.protocol.schedule, "eval_episodes": 20}
    second = replace(first, protocol=replace(first.protocol, schedule=schedule))
    [fault] = _protocol_faults(replace(study, groups=[first, second]))
    assert "eval_episodes is 20, others of protocol mylab have 10" in fault


def test_unfinished_runs_are_refused(results: Path) -> None:
    status = segment_record(results).with_name("status.json")
    rewrite(status, lambda content: content.update(state="running"))
    code, said = check(results)
    assert code == 1 and "not finished (running)" in said and "seeds [0] are not finished" in said


def test_what_a_reader_must_know_is_a_note(results: Path) -> None:
    """Not a fault of the contribution: a diverged run, an unstable simulation."""
    for file in results.glob("segments/*/status.json"):  # as `cwbench merge` leaves them
        rewrite(file, lambda content: content.update(records_only=True))
    status = segment_record(results).with_name("status.json")
    rewrite(status, lambda content: content.update(state="diverged"))
    rewrite(status, lambda content: content["resources"].update(unstable_episodes=2))
    code, said = check(results)
    assert code == 0, said
    assert said.startswith("cw3-1: accepted, 2 notes")
    assert "note: cw3-1, RECALL, seed 0: diverged; it is in no mean" in said
    assert "note: the simulation became unstable in 2 training episodes of recall-3-" in said


def test_impossible_counts_are_refused(results: Path) -> None:
    evals = segment_record(results).with_name("evals.csv")
    evals.write_text(evals.read_text().replace(",10,", ",1,", 1))
    code, said = check(results)
    assert code == 1 and "cannot be right" in said


def test_the_code_of_an_own_method_is_compared_with_its_hash(results: Path) -> None:
    code = b"class Mine: ..."
    name = hashlib.sha256(code).hexdigest()[:12]
    rewrite(segment_record(results), lambda record: record.update(source=name))
    (results / "sources").mkdir()
    (results / "sources" / f"{name}.py").write_bytes(code + b"# changed")
    assert "is not the code that was trained" in check(results)[1]
    (results / "sources" / f"{name}.py").write_bytes(code)
    assert "is not the code that was trained" not in check(results)[1]


def test_versions_of_a_method_may_be_contributed_together(tmp_path: Path) -> None:
    """Their rows name the code; two other settings of one label look alike there."""
    settings = [small("mine", source="0123456789ab"), small("mine", source="ba9876543210")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=[0])
    study = read(tmp_path)
    assert len(study.groups) == 2 and not list(_row_faults(study))
    alike = [replace(group, version="") for group in study.groups]
    assert list(_row_faults(replace(study, groups=alike))) == [
        "mine on cw3-1: 2 different settings under one label"
    ]


def test_contributions_are_named_once_and_are_there() -> None:
    """A missing or empty line would be an error of `make board` only."""
    files = [line.partition("=")[2] for line in CONTRIBUTIONS]
    assert len(set(files)) == len(files) >= 7
    assert all((ROOT / file).is_file() for file in files)


@pytest.mark.slow
@pytest.mark.parametrize("line", CONTRIBUTIONS)
def test_contributions_of_this_repository_are_accepted(line: str) -> None:
    contributor, _, file = line.partition("=")
    assert check(f"{contributor}={ROOT / file}")[0] == 0


def test_a_table_that_no_report_reads_must_be_what_was_written(results: Path) -> None:
    [folder, *_] = sorted(results.glob("segments/*"))
    file = folder / "retraining.csv"
    file.write_text("updates,position\n5,0\n")
    sums = {"checksums": {file.name: checksum(file), "end.safetensors": "not needed here"}}
    rewrite(folder / "status.json", lambda status: status.update(sums))
    assert check(results)[0] == 0
    file.write_text("updates,position\n6,0\n")
    code, output = check(results)
    assert code and f"{folder.name}/{file.name}: " in output and "checksum" in output

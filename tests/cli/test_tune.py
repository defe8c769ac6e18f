"""`cwbench tune`, and `cwbench run --tuned` with the files that it writes."""

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from cwbench import sequences
from cwbench.cli import cli
from cwbench.experiment.tuning import make_tuning, setting_of
from cwbench.spec.errors import UserError
from cwbench.store import tuning as store

SWEEP = ("tune", "ewc", "--on", "point3", "--option", "coef=1,10", "--protocol", "demo")


def test_a_launcher_that_does_not_wait_is_refused(tmp_path: Path) -> None:
    command = [*SWEEP, "--launcher", "print", "--results", str(tmp_path / "new")]
    made = CliRunner().invoke(cli, command)
    assert isinstance(made.exception, UserError)
    assert "tune has to wait for the results" in str(made.exception)
    assert not (tmp_path / "new").exists()


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    command = [*SWEEP, "--seeds", "0-1", "--dry-run", "--results", str(tmp_path / "new")]
    made = CliRunner().invoke(cli, command)
    assert made.exit_code == 0 and "4 runs = 12 segments" in made.output
    assert not (tmp_path / "new").exists()


def test_a_tuned_variant_is_run_as_that_variant(tmp_path: Path) -> None:
    """Its runs are recorded as RECALL's, whose other options are not the variant's."""
    tuning = make_tuning("recall-pairs", [sequences.get("point3")], {"clip_norm": [0.1, 1.0]})
    runs, _ = tuning.experiment.runs()
    settings = [setting_of({"clip_norm": clip}, np.array([0.5])) for clip in (1.0, 0.1)]
    file = store.write(tmp_path, tuning.record(settings, runs))
    command = ["run", "--seq", "point3", "--tuned", str(file), "--dry-run", "--json"]
    for given in ([], ["--method", "recall-pairs"]):
        made = CliRunner().invoke(cli, [*command, *given])
        assert made.exit_code == 0, made.exception
        planned = json.loads(made.stdout)["runs"]
        assert [run["segments"] for run in planned] == [[one.id for one in runs[1].segments]]
    made = CliRunner().invoke(cli, [*command, "--method", "recall"])
    assert "was tuned for recall-pairs, not for recall" in str(made.exception)


def test_a_method_may_be_named_by_its_alias(tmp_path: Path) -> None:
    record = {"method": "perfect-memory", "options": {}, "on": ["point3"], "settings": []}
    command = ["run", "--seq", "point3", "--tuned", str(store.write(tmp_path, record))]
    made = CliRunner().invoke(cli, [*command, "--dry-run", "--json", "--method", "pm"])
    assert made.exit_code == 0, made.exception


def test_a_file_of_another_method_or_kind_is_refused(tmp_path: Path) -> None:
    record = {"method": "ewc", "options": {"coef": 1.0}, "on": ["cw3-1"], "settings": []}
    file = store.write(tmp_path, record)
    command = ["run", "--seq", "cw3-1", "--tuned", str(file), "--method", "l2"]
    made = CliRunner().invoke(cli, command)
    assert "was tuned for ewc, not for l2" in str(made.exception)
    file.write_text("{}")
    made = CliRunner().invoke(cli, command)
    assert "not a file of `cwbench tune`" in str(made.exception)


def test_a_method_of_ones_own_is_named_with_its_file(tmp_path: Path) -> None:
    CliRunner().invoke(cli, ["new-method", "pull", "--folder", str(tmp_path)])
    record = {"method": "Pull", "options": {"coef": 3.0}, "on": ["point3"], "settings": []}
    file = store.write(tmp_path, record)
    command = ["run", "--seq", "point3", "--tuned", str(file), "--dry-run", "--json"]
    made = CliRunner().invoke(cli, command)
    assert "for a method of your own add --method FILE.py:Pull" in str(made.exception)
    made = CliRunner().invoke(cli, [*command, "--method", f"{tmp_path}/pull.py:Pull"])
    assert made.exit_code == 0 and '"label": "Pull (coef=3.0)"' in made.output


def test_a_refused_run_keeps_no_record_of_tuning(tmp_path: Path) -> None:
    record = {"method": "ewc", "options": {"coef": 1.0}, "on": ["cw3-1"], "settings": []}
    file, results = store.write(tmp_path, record), tmp_path / "results"
    command = ["run", "--seq", "cw3-1", "--tuned", str(file), "--results", str(results)]
    made = CliRunner().invoke(cli, [*command, "--slurm-time", "5"])
    assert "has no effect with --launcher local" in str(made.exception)
    assert not results.exists()

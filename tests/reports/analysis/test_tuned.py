"""What was chosen by `cwbench tune`, in reports. `tests/experiment/test_tuning.py` has the rest."""

from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis.tuned import sensitivity
from cwbench.store import tuning


def test_sensitivity_is_a_mean_over_the_other_options():
    scored = [
        ({"a": 1, "b": 1}, 0.9),
        ({"a": 1, "b": 2}, 0.5),
        ({"a": 2, "b": 1}, 0.3),
        ({"a": 2, "b": 2}, 0.1),
    ]
    assert sensitivity(scored) == {
        "a": {1: pytest.approx(0.7), 2: pytest.approx(0.2)},
        "b": {1: pytest.approx(0.6), 2: pytest.approx(0.3)},
    }


def test_a_sequence_with_a_namesake_is_still_one_that_was_tuned_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Reports call two sequences of one name mine+..., and records of tuning both mine."""
    for name in ("cw3-1", "cw3-2"):
        edited = sequences.Sequence("mine", sequences.get(name).tasks)
        with monkeypatch.context() as patch:
            patch.setattr(sequences, "get", lambda name, edited=edited: edited)
            write_results(
                tmp_path, sequence_names=["mine"], settings=[small("ewc")], seeds=[0], name=name
            )
    [group, _] = build.read(tmp_path).groups
    coef = build.read(tmp_path).segments[group.runs[0].segments[0]]["method_options"]["coef"]
    chosen = {"method": "ewc", "options": {"coef": coef}, "on": ["mine"], "settings": []}
    tuning.write(tmp_path, chosen)
    flagged = [one for one in build.read(tmp_path).problems if "chosen on mine" in one]
    assert len(flagged) == 2 and any(one.startswith(f"{group.sequence}, ") for one in flagged)

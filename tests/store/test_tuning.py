"""Records of `cwbench tune` on disk."""

from pathlib import Path
from typing import Any

import pytest

from cwbench.spec.errors import UserError
from cwbench.store import tuning

SETTING = {"options": {"coef": 1.0}, "score": 0.5, "low": 0.4, "high": 0.6, "runs": 2}
RECORD = {"method": "ewc", "options": {"coef": 1.0}, "on": ["cw3-1"], "settings": [SETTING]}


def test_a_record_is_read_as_it_was_written(tmp_path: Path):
    file = tuning.write(tmp_path, RECORD)
    assert tuning.read(file).items() >= RECORD.items()
    assert tuning.read_all(tmp_path, []) == [tuning.read(file)]


@pytest.mark.parametrize(
    "change", [{"on": "cw3-1"}, {"settings": [{}]}, {"settings": [SETTING | {"score": "high"}]}]
)
def test_a_damaged_record_is_a_problem(tmp_path: Path, change: dict[str, Any]):
    file = tuning.write(tmp_path, RECORD | change)
    with pytest.raises(UserError, match="not a file of `cwbench tune`"):
        tuning.read(file)
    problems: list[str] = []
    assert tuning.read_all(tmp_path, problems) == [] and len(problems) == 1


def test_a_segment_matches_by_method_and_chosen_options():
    groups: dict[str, Any] = {key: {} for key in ("schedule", "env", "network", "sac")}
    segment = {"method": "ewc", "method_options": {"coef": 1.0, "other": 2}, **groups}
    assert tuning.matches(RECORD, segment)
    assert not tuning.matches(RECORD, segment | {"method": "l2"})
    assert not tuning.matches(RECORD, segment | {"method_options": {"coef": 2.0}})


def test_an_option_that_all_settings_shared_counts_unless_it_is_a_condition():
    shared = {"lr": 1e-4, "actor_every": 1, "steps_per_task": 50}
    record = RECORD | {"options": {"coef": 1.0, **shared}}
    segment = {"method": "ewc", "method_options": {"coef": 1.0}, "sac": {"lr": 1e-4}}
    segment |= {"env": {}, "network": {}, "schedule": {"steps_per_task": 1000}}
    assert tuning.matches(record, segment)  # records leave out actor_every while it is 1
    assert not tuning.matches(record, segment | {"sac": {"lr": 1e-3}})
    assert not tuning.matches(record, segment | {"sac": {"lr": 1e-4, "actor_every": 2}})
    tried = [SETTING | {"options": {"steps_per_task": steps}} for steps in (50, 1000)]
    assert not tuning.matches(record | {"settings": tried}, segment)

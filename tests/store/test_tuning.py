"""Records of `cwbench tune` on disk."""

import math
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


def test_without_an_interval_a_record_is_still_json(tmp_path: Path):
    """Of one run."""
    alone = SETTING | {"low": math.nan, "high": math.nan, "runs": 1}
    file = tuning.write(tmp_path, RECORD | {"settings": [alone]})
    assert file.name == "ewc-42f7829a4fb6.json"
    text = file.read_text()
    assert text.count("null") == 2 and "NaN" not in text
    [found] = tuning.read(file)["settings"]
    assert math.isnan(found["low"]) and math.isnan(found["high"]) and found["runs"] == 1
    file.write_text(text.replace('"low": null,', ""))
    with pytest.raises(UserError, match="not a file of"):
        tuning.read(file)


@pytest.mark.parametrize(
    "change",
    [
        {"on": "cw3-1"},
        {"variant": 1},
        {"left_out": []},
        {"settings": [{}]},
        {"settings": [SETTING | {"score": "high"}]},
    ],
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


def test_what_all_settings_shared_is_no_part_of_the_choice():
    record = RECORD | {"options": {"coef": 1.0, "lr": 1e-4}}
    segment = {"method": "ewc", "method_options": {"coef": 1.0}, "sac": {"lr": 1e-3}}
    segment |= {"env": {}, "network": {}, "schedule": {"steps_per_task": 1000}}
    assert tuning.matches(record, segment)
    tried = [SETTING | {"options": {"coef": 1.0, "lr": lr}} for lr in (1e-4, 1e-3)]
    assert not tuning.matches(record | {"settings": tried}, segment)


def test_records_leave_out_what_is_compared():
    """Of `actor_every` while it is 1, and of `hidden` where layers are equal."""
    chosen = {"actor_every": 1, "hidden": "8,8"}
    record = RECORD | {"options": chosen, "settings": [SETTING | {"options": chosen}]}
    segment: dict[str, Any] = {"method": "ewc", "method_options": {}, "env": {}, "schedule": {}}
    segment |= {"network": {"width": 8, "layers": 2}, "sac": {}}
    assert tuning.matches(record, segment)
    assert not tuning.matches(record, segment | {"sac": {"actor_every": 2}})
    assert not tuning.matches(record, segment | {"network": {"width": 8, "layers": 3}})

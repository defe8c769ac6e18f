"""What the page says while training goes on."""

import json
import os
import platform
import time
from pathlib import Path

from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.page.live import live_section
from cwbench.store.results import SegmentFolder


def unfinished(root: Path) -> list[Path]:
    """Two runs in the middle of their second task; returns the folders of the running segments."""
    write_results(root, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0, 1], upto=0.5)
    folders = sorted(file.parent for file in root.glob("segments/*/status.json"))
    return [folder for folder in folders if SegmentFolder(folder).state == "running"]


def test_a_fleet_has_a_row_with_step_speed_and_time_left(tmp_path: Path):
    folders = unfinished(tmp_path)
    for folder in folders:
        owner = {"token": "t", "host": platform.node(), "pid": os.getpid()}
        (folder / "claim.json").write_text(json.dumps(owner))
        times = {"started": 1000.0, "started_step": 0, "updated": 1100.0}
        SegmentFolder(folder).set_status("running", **times, steps=10_000)
    text = live_section(build.read(tmp_path), tmp_path)
    assert text.count("<tr>") == 2  # the titles and one fleet
    assert f"{platform.node()}:{os.getpid()}" in text
    for cell in ("ewc", "2", "window-close", "5,000 of 10,000", "100", "1 min 40 s"):
        assert f"<td>{cell}</td>" in text, cell
    written = time.strftime("%H:%M:%S", time.localtime(1100.0))
    assert "<th scope=col>Written</th></tr>" in text and f"<td>{written}</td></tr>" in text
    assert "problems" not in text
    for folder in folders:
        SegmentFolder(folder).set_status("running", retraining=[2500, 10_000])
    text = live_section(build.read(tmp_path), tmp_path)
    assert "<td>at the task&#x27;s end, 2,500 of 10,000 updates</td><td>–</td><td>–</td>" in text


def test_a_dead_process_is_named_as_such(tmp_path: Path):
    folders = unfinished(tmp_path)
    text = live_section(build.read(tmp_path), tmp_path)
    assert "2 segments began" in text and folders[0].name in text and "<table" not in text


def test_nothing_trains_on_in_a_published_page(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0], upto=0.4)
    live, published = (
        build.write_page(tmp_path, tmp_path / "report", linked=linked).read_text()
        for linked in (True, False)
    )
    assert 'data-live="yes"' in live and 'id="training-now"' in live
    assert 'data-live="no"' in published and 'id="training-now"' not in published

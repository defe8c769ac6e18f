"""Videos of a results folder are on its page."""

from pathlib import Path
from typing import Any

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.page.videos import videos_section
from cwbench.sharing import video


def test_videos_are_shown_by_name_with_a_quoted_address(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[3])
    study = build.read(tmp_path)
    assert videos_section(study, tmp_path, "..") == ""
    [run] = study.groups[0].runs
    folder = tmp_path / "videos" / run.folders[1]
    folder.mkdir(parents=True)
    for name in ("push <1>.mp4", "notes.txt"):
        (folder / name).touch()
    (tmp_path / "videos" / "all.webm").touch()
    text = videos_section(study, tmp_path, "..")
    assert text.count("<video") == 2
    assert f'src="../videos/{run.folders[1]}/push%20%3C1%3E.mp4"' in text
    key = study.groups[0].key
    assert f'push &lt;1&gt;: <a href="#g-{key}">EWC on CW3-1, seed 3, after task 2</a>' in text
    assert "<figcaption>all</figcaption>" in text


@pytest.mark.slow
def test_a_film_of_a_policy_plays_on_the_page(browser: Any, toy_run: Any, tmp_path: Path):
    pytest.importorskip("imageio_ffmpeg")
    toy_run(tmp_path, "finetuning", seeds=(0,), tasks=("reach-0-1",))
    [one] = video.make_videos(tmp_path)
    [segment] = (tmp_path / "segments").iterdir()
    folder = tmp_path / "videos" / segment.name
    folder.mkdir(parents=True)
    video.write(folder / one.task, one.frames)
    page_file = build.write_page(tmp_path, tmp_path / "report")
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(page_file.as_uri())
    shown = page.locator("#videos video")
    # Not wait_for_function: after its first look it needs eval, which the page forbids.
    shown.evaluate(
        "video => new Promise((done, failed) => {"
        " video.ontimeupdate = () => video.currentTime > 0 && done();"
        " setTimeout(failed, 60000); video.play(); })"
    )
    assert shown.evaluate("video => [video.videoWidth, video.error]") == [video.SIZE[0], None]
    page.locator("#videos a").click()
    page.locator("dialog").wait_for(state="visible")

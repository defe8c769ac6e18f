"""Videos of a results folder are on its page."""

from pathlib import Path

from cwbench.reports.page.videos import videos_section


def test_videos_are_shown_by_name_with_a_quoted_address(tmp_path: Path):
    assert videos_section(tmp_path, "..") == ""
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("recall s0 <1>.mp4", "notes.txt"):
        (folder / name).touch()
    text = videos_section(tmp_path, "..")
    assert text.count("<video") == 1
    assert 'src="../videos/recall%20s0%20%3C1%3E.mp4"' in text
    assert "<figcaption>recall s0 &lt;1&gt;</figcaption>" in text

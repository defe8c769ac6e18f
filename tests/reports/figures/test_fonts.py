"""The small font has the glyphs of the whole one."""

import warnings
from pathlib import Path

import matplotlib
import pytest
from matplotlib import font_manager, ft2font
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cwbench.reports.figures import fonts


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ft2font.FT2Font:
    """Written by this test, whatever the cache holds."""
    monkeypatch.setattr(matplotlib, "get_cachedir", lambda: str(tmp_path))
    known = list(font_manager.fontManager.ttflist)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    fonts.families.cache_clear()
    fonts.families()
    [file] = tmp_path.iterdir()
    fonts.families.cache_clear()
    return ft2font.FT2Font(file)


def test_letters_are_as_wide_as_in_the_whole_font(small: ft2font.FT2Font):
    whole = ft2font.FT2Font(font_manager.findfont(fonts.WHOLE))
    for character in "RECALL 0.95 \N{MINUS SIGN}\N{GREEK SMALL LETTER LAMDA}\N{RIGHTWARDS ARROW}":
        widths = [font.load_char(ord(character)).linearHoriAdvance for font in (small, whole)]
        assert widths[0] == widths[1]
    assert small.family_name == fonts.LATIN
    assert len(small.get_charmap()) < len(whole.get_charmap()) / 2


def test_characters_that_the_small_font_lacks_come_from_the_whole_one():
    assert ord("\N{HEBREW LETTER ALEF}") not in fonts.CHARACTERS
    figure = Figure()
    figure.text(0.5, 0.5, "\N{HEBREW LETTER ALEF}", family=fonts.families())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a missing glyph
        FigureCanvasAgg(figure).draw()

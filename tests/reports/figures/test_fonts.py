"""The small font has the glyphs of the whole one; other letters come from installed fonts."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from fontTools import ttLib
from matplotlib import font_manager, ft2font
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cwbench.reports import build
from cwbench.reports.figures import fonts

Install = Callable[[str, str], None]


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


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs fonts whose glyphs are made of DejaVu's; what was there before is gone."""
    fonts.families()
    entries = list[font_manager.FontEntry]()
    monkeypatch.setattr(font_manager.fontManager, "ttflist", entries)
    for file in ("DejaVuSans.ttf", "LastResortHE-Regular.ttf"):
        font_manager.fontManager.addfont(Path(matplotlib.get_data_path()) / "fonts/ttf" / file)

    def install(name: str, characters: str) -> None:
        font = ttLib.TTFont(font_manager.findfont(fonts.WHOLE))
        font["cmap"].tables = [one for one in font["cmap"].tables if one.format == 12]
        for table in font["cmap"].tables:
            table.cmap = {ord(character): "A" for character in characters}
        for entry in font["name"].names:
            entry.string = str(entry).replace(fonts.WHOLE, name)
        font.save(tmp_path / f"{name}.ttf")
        font_manager.fontManager.addfont(tmp_path / f"{name}.ttf")

    fonts.fallbacks.cache_clear()
    yield install
    fonts.fallbacks.cache_clear()


def test_letters_that_dejavu_lacks_come_from_installed_fonts(installed: Install):
    installed("Few", "学")
    installed("Many", "強化学")
    installed("Emoji", "🙂")
    assert fonts.fallbacks("RECALL 強化学習🙂") == (["Many", "Emoji"], "習")
    style = fonts.style("強化🙂")
    assert style["font.family"][2:] == ["Many", "Emoji"] and style["pdf.fonttype"] == 3


def test_usual_names_need_no_other_font(installed: Install):
    installed("Many", "強化学")
    assert fonts.style("Größe λ →\N{VARIATION SELECTOR-16}") == {"font.family": fonts.families()}


def test_boxes_are_a_problem_that_names_the_letters(installed: Install, triplets: Path) -> None:
    study = build.read(triplets)
    assert fonts.problems(study) == []
    study.groups[0] = replace(study.groups[0], label="強化", tasks=("習🙂",))
    [problem] = fonts.problems(study)
    assert "no installed font has 化強習🙂; install one" in problem

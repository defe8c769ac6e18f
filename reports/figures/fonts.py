"""Fonts of figures: a small one, and installed ones for letters that it lacks.

Each PDF embeds a subset of its font. Taking it from the whole DejaVu Sans lasts as long as drawing,
so figures use a copy without the thousands of glyphs that none of them has.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import category

import matplotlib
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from cwbench.reports.analysis.study import Study

WHOLE, LATIN = "DejaVu Sans", "DejaVu Sans Latin"
# Latin, Greek and Cyrillic letters, punctuation, arrows and mathematical operators.
CHARACTERS = (*range(0x20, 0x530), *range(0x2010, 0x2060), *range(0x2190, 0x2300))
# Has a box for every character.
LAST_RESORT = "Last Resort High-Efficiency"


def characters(study: Study) -> str:
    """All letters of the names that figures show, each once."""
    names = (name for group in study.groups for name in (group.label, group.sequence, *group.tasks))
    return "".join(sorted({*"".join(names)}))


def problems(study: Study) -> list[str]:
    """What cannot be drawn, and what to do about it."""
    _, missing = fallbacks(characters(study))
    if not missing:
        return []
    hint = "install one that does, such as Noto Sans CJK or Noto Emoji"
    return [f"figures show boxes in some names: no installed font has {missing}; {hint}"]


def style(text: str) -> dict[str, Any]:
    """Settings of matplotlib that draw this text. What one font lacks is taken from the next."""
    others, _ = fallbacks(text)
    fonts: dict[str, Any] = {"font.family": [*families(), *others]}
    # As outlines: East Asian fonts are large, and many are of a kind that PDFs embed wrongly.
    return fonts | {"pdf.fonttype": 3} if others else fonts


@cache
def fallbacks(text: str) -> tuple[list[str], str]:
    """Installed fonts that have what DejaVu Sans lacks, and the characters that none has."""
    shown = {one for one in text if category(one)[0] not in "CMZ"}  # no marks, joiners, spaces
    missing = shown - _glyphs(font_manager.findfont(WHOLE), text)
    fonts = dict(_installed("".join(missing))) if missing else {}
    chosen = []
    while name := max(fonts, key=lambda name: len(fonts[name] & missing), default=None):
        if not fonts[name] & missing:
            break
        chosen.append(name)
        missing -= fonts[name]
    return chosen, "".join(sorted(missing))


def _installed(text: str) -> Iterator[tuple[str, set[str]]]:
    """Upright fonts of usual weight and width, by name, and the characters of a text they have."""
    usual = [
        entry
        for entry in font_manager.fontManager.ttflist
        if (entry.weight, entry.style, entry.stretch) == (400, "normal", "normal")
    ]
    for entry in sorted(usual, key=lambda entry: entry.name):
        if entry.name != LAST_RESORT:
            yield entry.name, _glyphs(entry.fname, text)


def _glyphs(file: str, text: str) -> set[str]:
    """Characters of a text that a font file has; none if it cannot be read."""
    with suppress(OSError, RuntimeError):
        font = FT2Font(file)
        return {one for one in text if font.get_char_index(ord(one))}
    return set()


@cache
def families() -> list[str]:
    """The small font, then the whole one."""
    file = Path(matplotlib.get_cachedir()) / f"cwbench-latin-{matplotlib.__version__}.ttf"
    if not file.exists():
        _write(file)
    font_manager.fontManager.addfont(file)
    return [LATIN, WHOLE]


def _write(file: Path) -> None:
    from fontTools import subset, ttLib

    font = ttLib.TTFont(font_manager.findfont(WHOLE))
    options = subset.Options(layout_features=[], drop_tables=["FFTM", "GSUB", "GPOS", "GDEF"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=CHARACTERS)
    subsetter.subset(font)
    for entry in font["name"].names:
        entry.string = str(entry).replace(WHOLE, LATIN)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    font.save(temporary)
    temporary.replace(file)

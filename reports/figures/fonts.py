"""The font of figures, without the thousands of glyphs that no figure of ours has.

Each PDF embeds a subset of its font. Taking it from the whole DejaVu Sans lasts as long as drawing.
"""

import os
from functools import cache
from pathlib import Path

import matplotlib
from matplotlib import font_manager

WHOLE, LATIN = "DejaVu Sans", "DejaVu Sans Latin"
# Latin, Greek and Cyrillic letters, punctuation, arrows and mathematical operators.
CHARACTERS = (*range(0x20, 0x530), *range(0x2010, 0x2060), *range(0x2190, 0x2300))


@cache
def families() -> list[str]:
    """Fonts by preference; characters that the first lacks are taken from the second."""
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

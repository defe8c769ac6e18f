"""Sphinx: `make docs` builds the site into build/docs. Warnings are errors."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["COLUMNS"] = "100"  # for the command line's own help texts

from cwbench import __version__

project = "cwbench"
author = "the cwbench authors"
copyright = f"2026, {author}"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["results/*.csv", "**/.ipynb_checkpoints"]
myst_heading_anchors = 3
nitpicky = False
autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "cwbench"
html_show_sourcelink = False


def setup(app: Any) -> None:
    for part in ("description", "options", "arguments", "epilog"):
        app.connect(f"sphinx-click-process-{part}", _escape)


def _escape(app: Any, context: Any, lines: list[str]) -> None:
    """Help texts are plain: a star in them is a star."""
    lines[:] = [line.replace("*", r"\*") for line in lines]

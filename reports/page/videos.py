"""Videos of a results folder, shown next to the runs."""

from html import escape
from pathlib import Path
from urllib.parse import quote

KINDS = (".mp4", ".webm")


def videos_section(results: Path, link: str) -> str:
    """Every file in RESULTS/videos; `link` leads from the page to the results folder."""
    folder = results / "videos"
    if not folder.is_dir():
        return ""
    files = sorted(file for file in folder.rglob("*") if file.suffix in KINDS)
    figures = "".join(_figure(file.relative_to(results), link) for file in files)
    return f'<div class="videos">{figures}</div>' if figures else ""


def _figure(file: Path, link: str) -> str:
    name = escape(file.relative_to("videos").with_suffix("").as_posix())
    address = quote(f"{link}/{file.as_posix()}")
    return (
        f'<figure><video src="{address}" controls preload="none" aria-label="{name}"></video>'
        f"<figcaption>{name}</figcaption></figure>"
    )

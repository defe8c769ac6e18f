"""Videos of a results folder, shown with the runs they are of."""

from html import escape
from pathlib import Path
from urllib.parse import quote

from cwbench.reports.analysis import names
from cwbench.reports.analysis.study import Study
from cwbench.reports.page.tables import link

KINDS = (".mp4", ".webm")
MANY = 24  # from here on a video is read only when it is played


def videos_section(study: Study, results: Path, results_href: str) -> str:
    """Every file in RESULTS/videos; `results_href` leads from the page to the results folder."""
    folder = results / "videos"
    files = sorted(file for file in folder.rglob("*") if file.suffix in KINDS)
    runs = _runs(study)
    preload = "metadata" if len(files) < MANY else "none"
    figures = "".join(
        _figure(file.relative_to(results), results_href, runs, preload) for file in files
    )
    return f'<div class="videos">{figures}</div>' if figures else ""


def _runs(study: Study) -> dict[str, tuple[str, str]]:
    """Segment folder -> anchor and name of a run that it belongs to."""
    return {
        folder: (
            f"g-{group.key}",
            f"{group.title} on {names.sequence_title(group.sequence)}, seed {run.seed}, "
            f"after task {position + 1}",
        )
        for group in study.groups
        for run in group.runs
        for position, folder in enumerate(run.folders)
    }


def _figure(file: Path, results_href: str, runs: dict[str, tuple[str, str]], preload: str) -> str:
    name = file.relative_to("videos").with_suffix("").as_posix()
    address, run = quote(f"{results_href}/{file.as_posix()}"), runs.get(file.parent.name)
    caption = f"{escape(file.stem)}: {link(*run)}" if run else escape(name)
    return (
        f'<figure><video src="{address}" controls muted preload="{preload}" '
        f'aria-label="{escape(name)}"></video><figcaption>{caption}</figcaption></figure>'
    )

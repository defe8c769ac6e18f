"""Results folders on the Hugging Face Hub, or in another folder: records, tables and weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from cwbench.sharing.services import asking
from cwbench.spec.errors import UserError
from cwbench.spec.extras import extra
from cwbench.spec.text import as_command
from cwbench.store import files
from cwbench.store.files import check_inside
from cwbench.store.results import FINAL_FILES, SEGMENTS, segment_folders

# Not shared: snapshots, replay, claims, reports.
SHARED = (
    "experiments/*.json",
    "sources/*.py",
    "tuning/*.json",
    *(f"{SEGMENTS}/{name}" for name in ("status.json", *FINAL_FILES)),
)
HINT = "the Hub needs a network, and `hf auth login` to write"


def push(results: Path, target: str) -> str:
    """Copy what others need to `hf:USER/NAME` (a data set) or to a folder; where it is now."""
    if not shared_files(results):
        raise UserError(f"{results} has no results to share")
    if (name := _hub_name(target)) is None:
        if Path(target).resolve() == results.resolve():
            raise UserError(f"{target} is the results folder itself", "name another folder")
        if (Path(target) / "segments").exists():
            hint = f"{as_command('merge', results, '--into', target, '--weights')} adds to it"
            raise UserError(f"{target} holds results already", hint)
        _copy(results, Path(target))
        return target
    api, patterns = _hub().HfApi(), [*SHARED]
    with asking(target, HINT):
        api.create_repo(name, repo_type="dataset", exist_ok=True)
        api.upload_folder(
            repo_id=name, repo_type="dataset", folder_path=str(results), allow_patterns=patterns
        )
    return f"https://huggingface.co/datasets/{name}"


def pull(source: str, results: Path) -> None:
    """Fetch such a results folder into a new one."""
    if results.exists() and any(results.iterdir()):
        raise UserError(f"{results} is not empty", "pull into a new folder, then `cwbench merge`")
    if (name := _hub_name(source)) is None:
        if not Path(source).is_dir():
            raise UserError(f"{source}: no such folder", "write hf:USER/NAME or a folder")
        _copy(Path(source), results)
        return
    fetch = _hub().snapshot_download
    with asking(source, HINT):
        fetch(name, repo_type="dataset", local_dir=str(results), allow_patterns=[*SHARED])
    files.sync_tree(results)
    files.sync(results.parent)


def shared_files(results: Path) -> list[Path]:
    """UserError for a link that leads out of the folder: nobody means to share what is there.

    Also for a folder that may not be listed: what is shared would lack it without a word.
    """
    others = (results / name for name in ("experiments", "sources", "tuning"))
    for folder in (*others, *segment_folders(results)):
        files.entries(folder)
    found = [file for pattern in SHARED for file in results.glob(pattern)]
    return [check_inside(results, file) for file in found]


def _copy(source: Path, target: Path) -> None:
    found = shared_files(source)
    for file in found:
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
        files.sync(copy)
    for folder in {one for file in found for one in file.relative_to(source).parents}:
        files.sync(target / folder)
    files.sync(target.parent)


def _hub_name(target: str) -> str | None:
    """USER/NAME of `hf:USER/NAME`; None for a folder."""
    if not target.startswith("hf:"):
        return None
    name = target.removeprefix("hf:")
    if name.count("/") != 1 or not all(name.split("/")):
        raise UserError(f"{target!r} is not an address on the Hub", "write hf:USER/NAME")
    return name


def _hub() -> Any:
    return extra("huggingface_hub", "cwbench[share]")

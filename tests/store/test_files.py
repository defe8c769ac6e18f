"""Files that are there whole or not at all, and names that stay inside a folder."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from other_user import private

from cwbench.spec.errors import UserError
from cwbench.store import files
from cwbench.store.files import Damaged, Unreadable

SYNC = files.sync  # tests replace it, for speed


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    files.write_json(file, {"state": "done"})
    with pytest.raises(OSError, match="No space left"), files.replacing(file) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")
    assert files.read_json(file) == {"state": "done"}
    assert list(tmp_path.iterdir()) == [file]


def test_content_is_synced_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def sync(path: Path) -> None:
        synced.append(path.read_text())
        assert not (tmp_path / "status.json").exists()

    monkeypatch.setattr(files, "sync", sync)
    files.write_json(tmp_path / "status.json", {"a": 1})
    assert synced == ['{\n "a": 1\n}\n']


def test_a_folder_that_may_not_be_listed_is_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /home with mode 711; root may list everything, so the refusal is made up."""

    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(os, "open", refuse)
    SYNC(tmp_path)
    with pytest.raises(PermissionError):
        SYNC(file)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "empty.json").touch()
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "list.json").write_text("[]")
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(Damaged, match=file.name):
            files.read_json(file)


def test_what_is_private_is_not_called_damaged(tmp_path: Path) -> None:
    """Its owner reads it without trouble."""
    file = tmp_path / "segment" / "a.npy"
    file.parent.mkdir()
    files.write_array(file, np.zeros(3))
    known = files.checksum(file)
    reads = (files.read_json, files.read_array, lambda path: files.check(path, known))
    for where in (file, file.parent):
        with private(where):
            for read in reads:
                with pytest.raises(Unreadable, match=r"a\.npy: not readable for you; ask"):
                    read(file)


def test_a_folder_that_may_not_be_listed_is_not_empty(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "a.csv"):
        (tmp_path / name).touch()
    assert files.entries(tmp_path, "*.json") == [tmp_path / "a.json", tmp_path / "b.json"]
    assert files.entries(tmp_path / "none") == files.entries(tmp_path / "a.csv") == []
    with private(tmp_path), pytest.raises(Unreadable, match=tmp_path.name):
        files.entries(tmp_path)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    files.write_array(file, np.arange(12, dtype=np.float32))
    good, expected = file.read_bytes(), files.checksum(file)
    files.check(file, expected)
    for bit in range(8 * len(good)):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        with pytest.raises(Damaged, match="checksum"):
            files.check(file, expected)


def test_a_checksum_of_the_beginning_ignores_what_was_added(tmp_path: Path) -> None:
    file = tmp_path / "evals.csv"
    file.write_text("step\n10\n")
    length, expected = file.stat().st_size, files.checksum(file)
    file.write_text("step\n10\n20\n")
    files.check(file, expected, length)
    file.write_text("step\n")
    with pytest.raises(Damaged, match="5 bytes, expected at least 8"):
        files.check(file, expected, length)


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    """The temporary name must not be longer than the 255 bytes that a name may have."""
    file = tmp_path / ("é" * 125 + ".json")
    files.write_json(file, {"a": 1})
    assert files.read_json(file) == {"a": 1} and list(tmp_path.iterdir()) == [file]
    assert len(os.fsencode(files.hidden(tmp_path / ("\U0001f600" * 60)).name)) <= 255


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "a\nb", "a\0b", "x" * 300, "\\"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a file's name"):
        files.checked_name(name, "task")


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    root, victim = tmp_path / "results", tmp_path / "home"
    (root / "inner").mkdir(parents=True)
    victim.mkdir()
    (root / "out").symlink_to(victim)
    (root / "in").symlink_to(root / "inner")
    files.check_inside(root, root / "in" / "x")
    with pytest.raises(UserError, match="leads out of"):
        files.check_inside(root, root / "out" / "x")


def test_nothing_is_written_through_links_of_a_results_folder(tmp_path: Path) -> None:
    root, own = tmp_path / "results", tmp_path / "own"
    for folder in (root / "report" / "tables", own):
        folder.mkdir(parents=True)
    for folder in (root / "report" / "tables", own):
        (folder / "a.tex").symlink_to(tmp_path / "precious")
    assert files.check_output(root, own) == own  # the user's own folder, whatever is there
    assert files.check_output(root, root / "videos") == root / "videos"
    with pytest.raises(UserError, match=r"a\.tex leads out of"):
        files.check_output(root, root / "report")


def test_an_array_that_does_not_fit_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numpy's error has neither a number nor a name."""

    def short(*args: Any, **kwargs: Any) -> None:
        raise OSError("100 requested and 20 written")

    monkeypatch.setattr(np, "save", short)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/a.npy'"):
        files.write_array(tmp_path / "a.npy", np.zeros(3))
    assert not list(tmp_path.iterdir())


def test_errors_without_a_file_get_the_folder(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=str(tmp_path)), files.naming_errors(tmp_path):
        raise full
    with pytest.raises(FileNotFoundError, match="nowhere"), files.naming_errors(tmp_path):
        Path("nowhere").read_text()

"""Results folders put together that are damaged, private, or on a disk that is full."""

import errno
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from faults import DAMAGE, Disk
from merging import evaluations, made
from other_user import private

from cwbench.cli import cli
from cwbench.spec import failure
from cwbench.spec.errors import UserError
from cwbench.store.files import checksum
from cwbench.store.integrity import damages
from cwbench.store.merge import merge
from cwbench.store.results import SegmentFolder


def sealed(root: Path) -> Path:
    """Results of one run of three tasks, with checksums, as training leaves them."""
    for folder in map(SegmentFolder, made(root, "ewc", [0]).glob("segments/*")):
        folder.end.write_bytes(b"weights")
        folder.set_status("done", checksums=folder.seal())
    return root


def test_a_damaged_segment_stays_behind_and_is_told(tmp_path: Path) -> None:
    source = made(tmp_path / "a", "ewc", [0])
    [first] = source.glob("segments/ewc-1-*")
    file = first / "segment.json"
    SegmentFolder(first).set_status("done", checksums={file.name: checksum(file)})
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1'))
    arguments = ["merge", str(source), "--into", str(tmp_path / "b")]
    told = CliRunner().invoke(cli, arguments)
    assert told.exit_code == 1
    assert "2 segments added" in told.output and "1 damaged segment left out" in told.output
    assert f"{first.name}/segment.json: its checksum differs" in told.output
    assert len(list((tmp_path / "b" / "segments").iterdir())) == 2


@pytest.mark.parametrize("table", ["evals.csv", "train.csv"])
@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_table_stays_behind_and_is_told(damage: str, table: str, tmp_path: Path) -> None:
    """A folder without its weights is not damaged: reports do not read them."""
    source = made(tmp_path / "a", "ewc", [0])
    for folder in map(SegmentFolder, source.glob("segments/*")):
        folder.end.write_bytes(b"weights")
        folder.set_status("done", checksums=folder.seal())
        folder.end.unlink()
    [first] = source.glob("segments/ewc-1-*")
    if damage == "missing":
        (first / table).unlink()
    else:
        (first / table).write_text((first / table).read_text().replace("1", "2", 1))
    told = CliRunner().invoke(cli, ["merge", str(source), "--into", str(tmp_path / "b")])
    assert told.exit_code == 1
    assert "2 segments added" in told.output and "1 damaged segment left out" in told.output
    assert f"problem: segments/{first.name}/{table}: " in told.output
    assert len(list((tmp_path / "b" / "segments").iterdir())) == 2
    with_weights = merge([source], tmp_path / "c", weights=True)
    assert (with_weights.added, len(with_weights.damaged)) == (0, 3)


def test_a_private_segment_stays_behind_and_is_told(tmp_path: Path) -> None:
    source = made(tmp_path / "a", "ewc", [0])
    [first] = source.glob("segments/ewc-1-*")
    with private(first):
        told = CliRunner().invoke(cli, ["merge", str(source), "--into", str(tmp_path / "b")])
    assert told.exit_code == 1 and "2 segments added" in told.output
    assert f"problem: segments/{first.name}/segment.json: not readable for you" in told.output


@pytest.mark.parametrize("damage", ["changed", "shorter"])
@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_nothing_is_taken_from_a_damaged_archive(place: float, damage: str, tmp_path: Path) -> None:
    """Where an entry's header is damaged, the archive ends there for tarfile."""
    folder, archive = made(tmp_path / "a", "ewc", [0]), tmp_path / "a.tar.gz"
    merge([folder], archive)
    content = bytearray(archive.read_bytes())
    cut = int(place * len(content))
    content[cut : cut + 4] = b"" if damage == "shorter" else bytes(4)
    archive.write_bytes(content)
    with pytest.raises(UserError, match=r"a.tar.gz: cannot be unpacked"):
        merge([archive], tmp_path / "b")
    assert not list(tmp_path.glob("b/segments/*"))


@pytest.mark.parametrize("name", ["status.json", "evals.csv"])
def test_a_private_file_is_not_called_damaged(name: str, tmp_path: Path) -> None:
    source = sealed(tmp_path / "a")
    [first] = source.glob("segments/ewc-1-*")
    with private(first / name):
        done = merge([source], tmp_path / "b")
    assert (done.added, done.damaged, done.unfinished) == (2, [], [])
    assert done.problems == [f"segments/{first.name}/{name}: not readable for you; ask its owner"]


@pytest.mark.parametrize("name", ["status.json", "train.csv", ""])
def test_a_private_segment_of_the_target_is_not_replaced(name: str, tmp_path: Path) -> None:
    source, target = sealed(tmp_path / "a"), tmp_path / "b"
    merge([source], target)
    [first] = target.glob("segments/ewc-1-*")
    before = first.stat().st_ino
    with private(first / name):
        done = merge([source], target, weights=True)
    assert (done.added, done.present, len(done.problems)) == (2, 0, 1)
    assert "not readable for you; ask its owner" in done.problems[0]
    assert first.stat().st_ino == before and not SegmentFolder(first).end.exists()


def test_code_and_choices_that_may_not_be_listed_are_problems(tmp_path: Path) -> None:
    source = made(tmp_path / "a", "ewc", [0])
    for name in ("sources", "tuning"):
        (source / name).mkdir(exist_ok=True)
        with private(source / name):
            done = merge([source], tmp_path / name)
        assert done.problems == [f"{name}: not readable for you; ask its owner"]


@pytest.mark.parametrize("name", ["evals.csv", "obs.npy"])
def test_a_full_disk_is_the_targets(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the copy names what was copied."""
    source, target = sealed(tmp_path / "a"), tmp_path / "b"
    for replay in (folder / "replay" for folder in source.glob("segments/*")):
        replay.mkdir()
        (replay / "obs.npy").write_bytes(b"transitions")
    copy2 = shutil.copy2

    def full(file: Path, half: Path) -> None:
        if Path(file).name == name:
            raise OSError(errno.ENOSPC, "No space left on device", str(file), None, str(half))
        copy2(file, half)

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        merge([source], target, weights=True)
    assert Path(caught.value.filename).is_relative_to(target)
    assert failure.of_the_disk(caught.value) and not list(target.glob("segments/*"))


@pytest.mark.parametrize("name", ["study", "study.tar.gz"])
def test_a_power_cut_after_a_merge_takes_nothing(name: str, tmp_path: Path) -> None:
    """What was not synced is lost then."""
    source, target = sealed(tmp_path / "a"), tmp_path / "new" / name
    with Disk().watching() as disk:
        merge([source], target, weights=True)
    disk.cut_power(target.parent)
    merge([target], tmp_path / "c", weights=True)
    assert evaluations(tmp_path / "c") == evaluations(source)
    assert not list(damages(tmp_path / "c", SegmentFolder.check_files))


@pytest.mark.parametrize("name", ["evals.csv", "train.csv", "segment.json", "status.json"])
@pytest.mark.parametrize("damage", ["empty", "half", "missing"])
def test_a_damaged_copy_in_the_target_is_replaced(name: str, damage: str, tmp_path: Path) -> None:
    source, target = sealed(tmp_path / "a"), tmp_path / "b"
    merge([source], target)
    [first] = target.glob("segments/ewc-1-*")
    DAMAGE[damage](first / name)
    done = merge([source], target)
    assert (done.added, done.present, done.problems) == (1, 2, [])
    assert done.replaced or (name, damage) == ("status.json", "missing")  # as if it never began
    assert not list(damages(target, SegmentFolder.check_files)) and evaluations(
        target
    ) == evaluations(source)


def test_a_damaged_copy_with_weights_is_replaced_by_nothing_less(tmp_path: Path) -> None:
    source, target = sealed(tmp_path / "a"), tmp_path / "b"
    merge([source], target, weights=True)
    [first] = target.glob("segments/ewc-1-*")
    DAMAGE["one byte less"](first / "train.csv")
    told = CliRunner().invoke(cli, ["merge", str(source), "--into", str(target)])
    assert told.exit_code == 1 and "0 segments added" in told.output
    assert f"{first.name}/train.csv: its checksum differs" in told.output
    assert f"{first.name} is damaged in {target}: a copy without weights" in told.output
    assert merge([source], target, weights=True).added == 1
    assert SegmentFolder(first).end.exists() and not list(
        damages(target, SegmentFolder.check_files)
    )


def test_a_damaged_copy_with_transitions_is_not_replaced_by_a_cleaned_one(tmp_path: Path) -> None:
    source, target = sealed(tmp_path / "a"), tmp_path / "b"
    [path] = source.glob("segments/ewc-1-*")
    first = SegmentFolder(path)
    first.replay.mkdir()
    (first.replay / "obs.npy").write_bytes(b"transitions")
    first.set_status("done", checksums=first.seal())
    merge([source], target, weights=True)
    shutil.rmtree(first.replay)  # as `cwbench clean` does
    copy = target / "segments" / path.name
    DAMAGE["one byte less"](copy / "train.csv")
    done = merge([source], target, weights=True)
    assert done.added == 0 and "a copy without its transitions is left out" in done.problems[-1]
    assert (copy / "replay" / "obs.npy").exists()

"""Files of tensors: what was saved is what is read, or an error names the file."""

import errno
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from cwbench.spec import failure
from cwbench.store import checkpoint
from cwbench.store.files import Damaged

TENSORS = {"w": torch.arange(6.0).view(2, 3), "n": torch.tensor([3]), "b": torch.tensor([True])}


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    file = tmp_path / "end.safetensors"
    checkpoint.save(file, TENSORS, {"step": 7, "last": float("inf")})
    tensors, record = checkpoint.load(file)
    assert record == {"step": 7, "last": float("inf")} and tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert checkpoint.load_record(file)["step"] == 7


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_weights_have_the_permissions_of_other_files(tmp_path: Path, umask: int, mode: int) -> None:
    """So that a colleague can continue what is in a shared folder."""
    before = os.umask(umask)
    try:
        checkpoint.save(tmp_path / "end.safetensors", TENSORS, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "end.safetensors").stat().st_mode) == mode


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "end.safetensors"
    checkpoint.save(file, TENSORS, {"step": 7})
    good, noticed = file.read_bytes(), 0
    for bit in range(8 * len(good)):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        try:
            tensors, record = checkpoint.load(file)
        except Damaged as error:
            noticed += str(file) in str(error)
            continue
        # Spaces of the header, or the name under which the checksum is found.
        assert record["step"] == 7
        assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert noticed > 7 * len(good)


def test_the_same_bytes_in_another_shape_or_type_are_damage(tmp_path: Path) -> None:
    file, weights = tmp_path / "end.safetensors", TENSORS["w"]
    checkpoint.save(file, TENSORS, {"step": 7})
    with safe_open(file, "pt") as opened:
        told = opened.metadata()
    for other in (weights.view(3, 2), weights.view(torch.int32)):
        save_file(TENSORS | {"w": other}, file, metadata=told)
        with pytest.raises(Damaged, match="checksum"):
            checkpoint.load(file)


def test_files_of_earlier_versions_have_no_checksum(tmp_path: Path) -> None:
    file = tmp_path / "end.safetensors"
    save_file(TENSORS, file, metadata={"record": '{"step": 7}'})
    assert checkpoint.load(file)[1] == {"step": 7}


def test_a_file_that_cannot_be_read_back_does_not_replace_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.safetensors"
    checkpoint.save(file, TENSORS, {"step": 1})

    def spoil(content: object, path: Path, metadata: dict[str, str]) -> None:
        save_file(TENSORS, path, metadata=metadata)
        path.write_bytes(path.read_bytes()[:-1])

    monkeypatch.setattr(checkpoint, "save_file", spoil)
    with pytest.raises(Damaged):
        checkpoint.save(file, TENSORS, {"step": 2})
    assert checkpoint.load(file)[1] == {"step": 1} and list(tmp_path.iterdir()) == [file]


def test_a_full_disk_is_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoint, "save_file", full)
    file = tmp_path / "end.safetensors"
    with pytest.raises(OSError, match="No space left") as caught:
        checkpoint.save(file, TENSORS, {})
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(file))
    assert failure.of_the_disk(caught.value)
    assert failure.last_line(caught.value).startswith(f"{file}: No space left on device; once")


def test_a_run_with_one_number_that_is_not_finite_is_told_from_others() -> None:
    tensors = {"a": torch.zeros(4, 2, 3), "b": torch.zeros(4), "none": torch.zeros(4, 0)}
    tensors["count"] = torch.ones(4, 1, dtype=torch.int64)
    assert checkpoint.finite(tensors) == [True] * 4
    tensors["a"][1, 1, 2], tensors["b"][3] = torch.nan, -torch.inf
    assert checkpoint.finite(tensors) == [True, False, True, False]

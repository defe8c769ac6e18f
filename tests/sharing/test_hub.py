"""A shared results folder gives the same runs and policies as the original."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from other_user import private

import cwbench
from cwbench.cli import main
from cwbench.sharing import hub
from cwbench.sharing.hub import pull, push, shared_files
from cwbench.spec.errors import UserError
from cwbench.store.results import FINAL_FILES, SegmentFolder


def test_a_folder_pushed_and_pulled_has_the_same_runs(shared_results: Path, tmp_path: Path) -> None:
    push(shared_results, str(tmp_path / "there"))
    pull(str(tmp_path / "there"), tmp_path / "back")
    one, other = (cwbench.load_runs(root) for root in (shared_results, tmp_path / "back"))
    pd.testing.assert_frame_equal(one.evaluations, other.evaluations)
    assert cwbench.load_policy(other[0]).weights.tolist() == (
        cwbench.load_policy(one[0]).weights.tolist()
    )
    assert not list((tmp_path / "back").rglob("replay"))


def test_a_pulled_folder_is_not_damaged(
    shared_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file that a finished segment has a checksum of is there."""
    main(["push", str(shared_results), str(tmp_path / "there")])
    main(["pull", str(tmp_path / "there"), str(tmp_path / "back")])
    for results in (shared_results, tmp_path / "back"):
        main(["verify", str(results)])
        assert f"0 damaged files in {results}" in capsys.readouterr().out


def test_nothing_is_shared_without_what_is_private(shared_results: Path, tmp_path: Path) -> None:
    for folder in (shared_results / "experiments", min(shared_results.glob("segments/*"))):
        with private(folder), pytest.raises(UserError, match=f"{folder.name}: not readable"):
            push(shared_results, str(tmp_path / "there"))
    assert not (tmp_path / "there").exists()


def test_every_sealed_file_travels(shared_results: Path, tmp_path: Path) -> None:
    """Also those that only some methods and options write."""
    results = tmp_path / "results"
    shutil.copytree(shared_results, results)
    folder = SegmentFolder(min(results.glob("segments/*")))
    for name in FINAL_FILES:
        (folder.path / name).touch()
    folder.set_status("done", checksums=folder.seal())
    push(results, str(tmp_path / "there"))
    SegmentFolder(tmp_path / "there" / "segments" / folder.path.name).check_files()


def test_a_folder_with_results_is_not_pushed_into(shared_results: Path, tmp_path: Path) -> None:
    there = tmp_path / "over there"
    push(shared_results, str(there))
    table = min(there.glob("segments/*/evals.csv"))
    table.write_text("other numbers")
    with pytest.raises(
        UserError, match=r"there holds results already; .* --into '\S*/over there' "
    ):
        push(shared_results, str(there))
    assert table.read_text() == "other numbers"


def test_the_hub_gets_the_same_files(
    shared_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """huggingface_hub's own filter chooses from its arguments what `push` to a folder copies."""
    pytest.importorskip("huggingface_hub")
    from huggingface_hub.utils import filter_repo_objects

    calls: dict[str, Any] = {}
    api = SimpleNamespace(
        create_repo=lambda name, **how: calls.update(name=name),
        upload_folder=lambda **how: calls.update(how),
    )
    monkeypatch.setattr(hub, "_hub", lambda: SimpleNamespace(HfApi=lambda: api))
    assert push(shared_results, "hf:me/runs") == "https://huggingface.co/datasets/me/runs"
    assert calls["name"] == calls["repo_id"] == "me/runs"
    names = [str(f.relative_to(shared_results)) for f in shared_results.rglob("*") if f.is_file()]
    kept = filter_repo_objects(names, allow_patterns=calls["allow_patterns"])
    expected = {str(file.relative_to(shared_results)) for file in shared_files(shared_results)}
    assert set(kept) == expected and len(expected) >= 4 * 5


@pytest.mark.parametrize("target", ["hf:", "hf:me", "hf:me/", "hf:a/b/c"])
def test_names_on_the_hub_have_two_parts(target: str, shared_results: Path) -> None:
    with pytest.raises(UserError, match="write hf:USER/NAME"):
        push(shared_results, target)


def test_nothing_is_overwritten(shared_results: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UserError, match="is not empty"):
        pull(str(shared_results), tmp_path)
    with pytest.raises(UserError, match="no results to share"):
        push(tmp_path, "hf:me/runs")


@pytest.mark.parametrize("name", ["results", "other/../results", "link"])
def test_a_folder_is_not_pushed_into_itself(
    name: str, shared_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    push(shared_results, str(results))
    (tmp_path / "link").symlink_to(results)
    with pytest.raises(SystemExit, match="2"):
        main(["push", str(results), str(tmp_path / name)])
    assert f"{name} is the results folder itself; name another folder" in capsys.readouterr().err


@pytest.mark.parametrize("share", [push, lambda source, target: pull(str(source), Path(target))])
def test_files_that_links_lead_to_are_not_shared(
    share: Any, shared_results: Path, tmp_path: Path
) -> None:
    results, secret = tmp_path / "results", tmp_path / "secret"
    push(shared_results, str(results))
    secret.write_text("a password")
    (results / "sources").mkdir(exist_ok=True)
    (results / "sources" / "0123456789ab.py").symlink_to(secret)
    with pytest.raises(UserError, match=r"0123456789ab\.py leads out of"):
        share(results, str(tmp_path / "there"))
    assert not (tmp_path / "there").exists()

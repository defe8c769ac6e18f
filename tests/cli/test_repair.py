"""`cwbench doctor`, `verify` and `repair` of a damaged results folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from other_user import private

from cwbench.cli import main
from cwbench.store import claims, integrity
from cwbench.store.records import Problem
from cwbench.store.runs import load_runs

TASKS = ("reach-0-1", "reach-2-1000")
NAME = "ewc-1-hammer-s0-0123456789ab"  # of a segment's folder


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)


def test_damage_is_found_set_aside_and_trained_again(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, tasks=TASKS)
    first, second = (store.folder(segment) for segment in plan.segments)
    before = load_runs(tmp_path).evals
    ends = [folder.end.read_bytes() for folder in (first, second)]
    for command, what in (("doctor", "unreadable"), ("verify", "damaged")):
        main([command, str(tmp_path)])
        assert f"0 {what} files in {tmp_path}" in capsys.readouterr().out
    main(["repair", str(tmp_path)])
    assert "nothing to repair" in capsys.readouterr().out

    flip(first.end)  # only its checksum can tell
    (second.path / "status.json").write_text("")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(tmp_path), "--json"])
    assert ended.value.code == 1
    [found] = json.loads(capsys.readouterr().out)
    assert found["file"] == f"segments/{second.path.name}/status.json"
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path), "--json"])
    assert ended.value.code == 1 and len(json.loads(capsys.readouterr().out)) == 2

    main(["repair", str(tmp_path), "--dry-run"])
    assert first.path.exists() and not (tmp_path / "damaged").exists()
    main(["repair", str(tmp_path)])
    aside = tmp_path / "damaged" / first.path.name / "end.safetensors"
    assert not first.path.exists() and len(aside.read_bytes()) == len(ends[0])
    _, again, outcome = toy_run(tmp_path, tasks=TASKS)
    assert again.missing == outcome.trained == 2
    assert [folder.end.read_bytes() for folder in (first, second)] == ends
    assert load_runs(tmp_path).evals.equals(before)


@pytest.mark.parametrize("name", ["end.safetensors", "evals.csv", ""])
def test_what_another_user_keeps_private_stays(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A file, or the whole segment."""
    store, plan, _ = toy_run(tmp_path, tasks=TASKS[:1])
    folder = store.folder(plan.segments[0])
    capsys.readouterr()
    with private(folder.path / name):
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(tmp_path)])
        said = capsys.readouterr().out
        assert ended.value.code == 1 and "not readable for you" in said and "repair" not in said
        assert f"1 damaged or unreadable file in {tmp_path}" in said
        main(["repair", str(tmp_path)])
        said = capsys.readouterr().out
        assert "stays" in said and said.splitlines()[-1] == "0 set aside"
    assert folder.done and not (tmp_path / "damaged").exists()


def test_doctor_claims_nothing_about_bytes_that_it_does_not_read(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed count can be read: only its checksum can tell."""
    store, plan, _ = toy_run(tmp_path, tasks=TASKS[:1])
    flip(store.folder(plan.segments[0]).path / "evals.csv")
    main(["doctor", str(tmp_path)])
    said = capsys.readouterr().out
    assert "0 unreadable files" in said and f"`cwbench verify {tmp_path}`" in said
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path)])
    assert ended.value.code == 1 and "1 damaged file in" in capsys.readouterr().out


def test_advised_commands_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "my results"
    (results / "segments" / NAME).mkdir(parents=True)
    (results / "segments" / NAME / "status.json").write_text("")
    with pytest.raises(SystemExit):
        main(["doctor", str(results)])
    said = capsys.readouterr().out
    assert f"`cwbench repair '{results}'`" in said and f"`cwbench verify '{results}'`" in said


def test_a_segment_that_was_trained_again_meanwhile_stays(
    toy_run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two are damaged when repair reads them; then one is whole again, one is being trained."""
    store, plan, _ = toy_run(tmp_path, tasks=TASKS)
    first, second = (store.folder(segment) for segment in plan.segments)
    flip(first.end)
    flip(second.end)
    damages = list(integrity.damages(tmp_path, integrity.full_check))
    assert [one.segment for one in damages] == [first.path.name, second.path.name]

    def found(*_: Any) -> list[Problem]:
        flip(first.end)
        return damages

    monkeypatch.setattr(integrity, "damages", found)
    with monkeypatch.context() as patch:
        looks = iter(["", "other:1"])  # for the second: free, then taken
        patch.setattr(claims, "owner", lambda f: next(looks) if f.path == second.path else "")
        main(["repair", str(tmp_path)])
    assert first.done and second.done and not (tmp_path / "damaged").exists()
    said = capsys.readouterr().out
    assert said.count("changed since: stays") == 2 and "0 set aside" in said


@pytest.mark.parametrize("command", ["doctor", "verify", "repair"])
def test_results_of_a_newer_version_are_not_called_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    record = tmp_path / "segments" / NAME / "segment.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"schema": 99}')
    with pytest.raises(SystemExit) as ended:
        main([command, str(tmp_path)])
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == ""
    assert said.err.endswith(
        f"{record} was written by a newer cwbench; upgrade, or use another folder\n"
    )


def test_a_linked_record_is_set_aside_as_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    results = tmp_path / "my: results"
    for name in ("segments", "experiments"):
        (results / name).mkdir(parents=True)
    (results / "experiments" / "one.json").symlink_to(outside)
    main(["repair", str(results)])
    assert (results / "damaged" / "one.json").is_symlink() and outside.read_text() == "{}"
    assert not list((results / "experiments").iterdir())


def test_damage_set_aside_twice_keeps_both(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "experiments").mkdir()
    for content in ("{", "["):
        (tmp_path / "experiments" / "one.json").write_text(content)
        main(["repair", str(tmp_path)])
    assert (tmp_path / "damaged" / "one.json").read_text() == "{"
    assert (tmp_path / "damaged" / "one.json.1").read_text() == "["


def test_a_linked_segment_is_set_aside_as_a_link(tmp_path: Path) -> None:
    results, home = tmp_path / "results", tmp_path / "home"
    (results / "segments").mkdir(parents=True)
    home.mkdir()
    (home / ".precious").write_text("x")
    (results / "segments" / NAME).symlink_to(home)
    main(["repair", str(results)])
    assert (results / "damaged" / NAME).is_symlink() and (home / ".precious").exists()


@pytest.mark.parametrize("folder", ["experiments", "segments"])
def test_what_a_linked_folder_holds_stays_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    """Someone's own settings, and a folder that is named like a segment."""
    results, home = tmp_path / "results", tmp_path / "home"
    [other] = {"experiments", "segments"} - {folder}
    (results / other).mkdir(parents=True)
    (home / NAME).mkdir(parents=True)
    for file in (home / "settings.json", home / NAME / "segment.json"):
        file.write_text("{}")
    (results / folder).symlink_to(home)
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(results), "--json"])
    assert ended.value.code == 1
    [found] = json.loads(capsys.readouterr().out)
    reason = f"leads out of {results}; replace the link by what it points to"
    assert (found["file"], found["damage"]) == (folder, reason)
    main(["repair", str(results)])
    said = capsys.readouterr().out
    assert "0 set aside" in said and said.splitlines()[1].split()[-1] == "stays"
    assert (results / folder).is_symlink() and not (results / "damaged").exists()
    assert {path.name for path in home.rglob("*")} == {NAME, "segment.json", "settings.json"}

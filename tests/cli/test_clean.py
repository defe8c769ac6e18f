"""`cwbench clean`: what goes, and what must stay."""

import io
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from other_user import private

from cwbench.cli import main
from cwbench.reports import build
from cwbench.reports.tables.verify import sign
from cwbench.spec.errors import UserError
from cwbench.store.cleanup import leftovers
from cwbench.store.runs import load_runs

TASKS = ("reach-0-1", "reach-2-1000", "reach-4-1")


def tables(root: Path) -> list[str]:
    study = build.read(root)
    made = [
        sign(scores, table, "markdown", "percentile")
        for name in build.table_names(study)
        for _, scores, table in build.tables_of(study, name)
    ]
    assert len(made) > 3
    return made


def test_clean_keeps_everything_a_report_needs(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", seeds=(0, 1))
    before, runs = tables(tmp_path), load_runs(tmp_path)
    replay = [store.folder(segment).replay for segment in plan.segments]
    size = sum(file.stat().st_size for folder in replay for file in folder.iterdir())
    found, _ = leftovers(tmp_path)
    assert sorted(item.path for item in found) == sorted(replay)
    assert sum(item.bytes for item in found) == size
    main(["clean", str(tmp_path), "--dry-run"])
    assert all(folder.exists() for folder in replay)
    main(["clean", str(tmp_path), "--yes"])
    assert not any(folder.exists() for folder in replay)
    assert all(store.folder(segment).end.exists() for segment in plan.segments)
    assert tables(tmp_path) == before and load_runs(tmp_path).evals.equals(runs.evals)
    capsys.readouterr()
    main(["clean", str(tmp_path)])
    assert "nothing to remove" in capsys.readouterr().out


def test_a_longer_sequence_is_refused_until_the_replay_is_back(
    toy_run: Any, tmp_path: Path
) -> None:
    """Only where its method replays what was removed; the finished one stays finished."""
    here, copy = tmp_path / "here", tmp_path / "copy"
    store, plan, _ = toy_run(here, "perfect-memory")
    toy_run(here, "finetuning")
    shutil.copytree(here, copy)
    main(["clean", str(here), "--yes"])
    assert toy_run(here, "perfect-memory")[1].missing == 0
    longer = {"tasks": (*TASKS, "reach-1-1")}
    first = plan.segments[0].folder
    with pytest.raises(UserError, match=rf"`cwbench clean` removed .*: of {first} and 2 more;"):
        toy_run(here, "perfect-memory", **longer)
    assert all(store.folder(segment).done for segment in plan.segments)
    assert toy_run(here, "finetuning", **longer)[2].trained == 1
    main(["merge", str(copy), "--into", str(here), "--weights"])
    assert toy_run(here, "perfect-memory", **longer)[2].trained == 1


def old(file: Path, content: str = "x") -> Path:
    file.write_text(content)
    moment = time.time() - 2 * 86_400  # old for a claim, too
    os.utime(file, (moment, moment))
    return file


def test_clean_refuses_when_a_record_cannot_be_read(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    (tmp_path / "experiments" / "other.json").write_text("{")
    with pytest.raises(SystemExit) as exit_code:
        main(["clean", str(tmp_path), "--yes"])
    assert exit_code.value.code == 1
    assert "other.json" in capsys.readouterr().err
    assert store.folder(plan.segments[0]).replay.exists()


@pytest.mark.parametrize("name", ["experiments", "segments"])
def test_clean_refuses_when_records_may_not_be_listed(
    toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The second task still needs the first one's replay."""
    store, plan, _ = toy_run(tmp_path, "perfect-memory", stop_after=14)
    with private(tmp_path / name), pytest.raises(SystemExit) as exit_code:
        main(["clean", str(tmp_path), "--yes"])
    assert exit_code.value.code == 2
    assert f"{name}: not readable for you; ask its owner" in capsys.readouterr().err
    assert store.folder(plan.segments[0]).replay.exists()


def test_clean_asks(toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nobody there to say yes
    with pytest.raises(SystemExit):
        main(["clean", str(tmp_path)])
    assert store.folder(plan.segments[0]).replay.exists()


def test_clean_looks_again_before_it_removes(
    toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Another process takes the segment while the question is on the screen."""
    store, plan, _ = toy_run(tmp_path, "perfect-memory", tasks=TASKS[:1])
    folder = store.folder(plan.segments[0])

    def confirm(*_: Any, **__: Any) -> None:
        owner = {"token": "x", "host": "elsewhere", "pid": 1}
        (folder.path / "claim.json").write_text(json.dumps(owner))

    monkeypatch.setattr("click.confirm", confirm)
    main(["clean", str(tmp_path)])
    assert folder.replay.exists() and "1 item is in use" in capsys.readouterr().out


def test_clean_follows_no_links(tmp_path: Path, capsys: Any) -> None:
    home = tmp_path / "home"
    home.mkdir()
    precious = old(home / ".bashrc")
    root = tmp_path / "results"
    (root / "segments").mkdir(parents=True)
    (root / "experiments").symlink_to(home)
    with pytest.raises(SystemExit) as ended:
        main(["clean", str(root), "--yes"])
    assert ended.value.code == 2 and "leads out of" in capsys.readouterr().err
    assert precious.exists()

"""Code that a record names does not run unless the user says so."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from sample_results import change_experiment
from strangers import evil_file, fails

import cwbench
from cwbench.experiment.trust import check_trust, named_code
from cwbench.sequences.gymnasium import PHYSICS
from cwbench.sharing.export import export
from cwbench.spec.errors import UserError
from cwbench.spec.segment import setup_digest


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    return evil_file(tmp_path)


def test_retry_never_runs_a_file_that_a_record_names(
    evil: Path, toy_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "results"
    store, plan, _ = toy_run(root, tasks=("reach-0-x",))  # fails
    file = store.folder(plan.segments[0]).path / "segment.json"
    record = json.loads(file.read_text())
    record["method"] = f"{evil}:Pull"
    file.write_text(json.dumps(record))
    [experiment] = root.glob("experiments/*")
    after = setup_digest(record)
    change_experiment(experiment, lambda asked: asked["runs"][0].update(setup=after))
    capsys.readouterr()
    for further in ([], ["--dry-run"], ["--trust"]):
        assert "the record names a method file" in fails(["retry", str(root), *further], capsys)
    assert not (tmp_path / "ran").exists()


def test_environments_that_records_name_need_trust() -> None:
    tasks = [
        {"id": "HalfCheetah-v5", "wrappers": [{"wrapper": PHYSICS, "kwargs": {}}]},
        {"id": "evil:Env-v0", "wrappers": ["evil:Wrapper"]},
        {"callable": "os:system", "wrappers": []},
    ]
    names = list(named_code("recall", {"tasks": tasks}))
    assert names == ["evil:Env-v0", "evil:Wrapper", "os:system"]
    with pytest.raises(UserError, match="evil:Env-v0, evil:Wrapper, os:system"):
        check_trust(names, False, print)
    check_trust(named_code("recall", {"tasks": tasks[:1]}), False, print)


FOREIGN = {
    "name": "reach",
    "callable": "evil:make",
    "kwargs": {},
    "wrappers": [],
    "score": {"threshold": 1.0},
    "horizon": 20,
    "obs_size": 12,
    "action_size": 4,
    "resume": "exact",
}
ENV = {"suite": "gymnasium", "horizon": 20, "tasks": [FOREIGN]}


@pytest.fixture
def foreign(
    evil: Path, toy_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """Results whose segment names an environment in a module that could be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    root = tmp_path / "results"
    store, plan, _ = toy_run(root, tasks=("reach-0-1",))
    folder = store.folder(plan.segments[0])
    file = folder.path / "segment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"env": ENV}))
    status = folder.status()
    del status["checksums"]  # whoever forges a record leaves them out
    (folder.path / "status.json").write_text(json.dumps(status))
    return root, file


def test_policies_whose_record_names_code_need_trust(
    foreign: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, file = foreign
    [run] = cwbench.load_runs(root)
    message = "would run code that a record names: evil:make; give --trust"
    card = tmp_path / "card.json"
    layout: dict[str, Any] = dict.fromkeys(("layers", "head_layers"), 1) | {
        "shapes": {},
        "activation": "relu",
    }
    layout |= {"log_std": "clip", "log_std_range": [0, 1]}
    record = json.loads(file.read_text())
    card.write_text(json.dumps({"layout": layout, "weights": "w.safetensors", "segment": record}))
    for read in (
        lambda: cwbench.load_policy(run),
        lambda: cwbench.load_policy(card),
        lambda: list(export(root, "weights", tmp_path / "out")),
    ):
        with pytest.raises(UserError, match=message):
            read()
    assert message in fails(["video", str(file.parent)], capsys)
    assert message in fails(["export", str(root), "--to", "weights"], capsys)  # exit code 2
    assert not (root / "export").exists()
    assert not (tmp_path / "ran").exists()
    with pytest.raises(UserError, match="cannot import 'evil:make'"):  # it has no such function
        cwbench.load_policy(run, trust=True)
    assert (tmp_path / "ran").exists()


def test_retry_looks_at_the_record_that_a_run_is_built_from(
    foreign: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run may name the setup of a segment that is not one of its own."""
    root, file = foreign
    record = json.loads(file.read_text())
    [experiment] = root.glob("experiments/*")
    own = file.parent.with_name("finetuning-1-reach-s0-000000000000")
    own.mkdir()
    honest = record | {"id": "0" * 12, "env": {"suite": "pointmass"}}
    (own / "segment.json").write_text(json.dumps(honest))
    (own / "status.json").write_text(json.dumps({"state": "failed", "step": 0}))
    changed = {"segments": ["0" * 12], "setup": setup_digest(record)}
    change_experiment(experiment, lambda asked: asked["runs"][0].update(changed))
    assert "evil:make; give --trust" in fails(["retry", str(root)], capsys)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden"])
def test_exports_stay_in_their_folder(name: str, toy_run: Any, tmp_path: Path) -> None:
    toy_run(tmp_path / "results", tasks=("reach-0-1",))
    [experiment] = (tmp_path / "results").glob("experiments/*")
    changed = {"label": name, "protocol": "../out"}
    change_experiment(experiment, lambda asked: asked["runs"][0].update(changed))
    for kind in ("weights", "rliable"):
        with pytest.raises(UserError, match="cannot be a file's name"):
            list(export(tmp_path / "results", kind))
    assert [file.name for file in tmp_path.iterdir()] == ["results"]


# Where code is loaded by a name or from bytes; docs/reliability.md says why each place is safe.
LOADERS = {
    "cwbench/__init__.py",
    "cwbench/cli/__init__.py",
    "cwbench/envs/metaworld/rewrite.py",
    "cwbench/learner/architecture.py",
    "cwbench/rollout/processes.py",  # writes what worker.py reads: requests, through a pipe
    "cwbench/rollout/worker.py",
    "cwbench/spec/env_source.py",
    "cwbench/spec/extras.py",
    "cwbench/spec/tasks.py",
    "methods/__init__.py",
}
LOADING = {"import_module", "__import__", "exec", "eval", "spec_from_file_location"}
ROOT = Path(__file__).parents[2]


WORDS = (*LOADING, "pickle", "torch.load")  # looked for first: parsing is slow


def loads_code(text: str) -> bool:
    if not any(word in text for word in WORDS):
        return False
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names) if any("pickle" in name.name for name in names):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in LOADING:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
                if name in LOADING - {"eval"} or (owner, name) == ("torch", "load"):
                    return True
    return False


def test_all_places_that_load_code_are_known() -> None:
    folders = ("cwbench", "methods", "reports", "sequences")  # links in cwbench/ are not followed
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    found = {str(f.relative_to(ROOT)) for f in files if loads_code(f.read_text(encoding="utf-8"))}
    links = ("cwbench/methods", "cwbench/reports", "cwbench/sequences")
    assert {name for name in found if not name.startswith(links)} == LOADERS

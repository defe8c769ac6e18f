"""Results folders put together."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from merging import evaluations, made
from sample_results import small, write_results

from cwbench.cli import cli
from cwbench.sharing.hub import push
from cwbench.spec.errors import UserError
from cwbench.store import tuning
from cwbench.store.claims import Claims
from cwbench.store.integrity import damages, full_check
from cwbench.store.merge import _written, merge, opened
from cwbench.store.results import SegmentFolder, Store, is_results
from cwbench.store.runs import load_runs


def test_a_merged_folder_has_the_runs_of_all(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", "ewc", [0, 1]), made(tmp_path / "b", "ewc", [1, 2])
    done = merge([a, b], tmp_path / "c")
    # Three tasks of seeds 0, 1, 2; seed 1 is in both sources.
    assert (done.added, done.present, done.repeated) == (9, 0, 3)
    assert evaluations(tmp_path / "c") == evaluations(a) | evaluations(b)
    assert not load_runs(tmp_path / "c").problems
    for record in a.glob("segments/*/segment.json"):  # provenance stays
        assert (tmp_path / "c" / record.relative_to(a)).read_bytes() == record.read_bytes()
    again = merge([a, b], tmp_path / "c")
    assert (again.added, again.present, again.repeated) == (0, 9, 3)


def test_what_was_there_is_told_from_what_sources_share(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", "ewc", [0, 1]), made(tmp_path / "b", "ewc", [1])
    merging = ["merge", str(a), str(b), "--into", str(tmp_path / "c")]
    new, again = (CliRunner().invoke(cli, merging).output.splitlines()[0] for _ in range(2))
    assert new.endswith("c, 3 were in several sources") and new.startswith("6 segments added")
    assert again.endswith("c, 6 were there, 3 were in several sources")


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.bz2", "x.tar.xz"])
def test_other_archives_are_refused(tmp_path: Path, name: str) -> None:
    source = made(tmp_path / "a", "ewc", [0])
    with pytest.raises(UserError, match=f"{name}: not a kind of archive that is written; use"):
        merge([source], tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["study.tar.gz", "study.tgz"])
def test_an_archive_grows_block_by_block(tmp_path: Path, name: str) -> None:
    blocks = [made(tmp_path / str(seed), "ewc", [seed]) for seed in range(2)]
    study = tmp_path / name
    for block in blocks:
        merge([block], study)
    merge([study], tmp_path / "unpacked")
    assert evaluations(tmp_path / "unpacked") == evaluations(blocks[0]) | evaluations(blocks[1])
    with tarfile.open(study) as packed:
        assert {entry.name.split("/")[0] for entry in packed} == {"study"}


def test_an_archive_writes_nothing_outside(tmp_path: Path) -> None:
    archive, victim = tmp_path / "a.tar.gz", tmp_path / "victim"
    merge([made(tmp_path / "a", "ewc", [0])], archive)
    with opened(archive) as folder, tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, "a")
        packed.add(folder / "experiments", f"a/{'../' * 20}{victim.relative_to('/')}")
    with pytest.raises(UserError, match="cannot be unpacked"):
        merge([archive], tmp_path / "b")
    assert not victim.exists()


def test_a_block_without_a_finished_segment_is_empty(tmp_path: Path) -> None:
    """Its archive has experiments and no segments."""
    begun, done = made(tmp_path / "a", "ewc", [0], upto=0.1), made(tmp_path / "b", "ewc", [1])
    block = tmp_path / "block.tar.gz"
    assert merge([begun], block).added == 0
    with opened(block) as unpacked:
        assert not (unpacked / "segments").exists() and is_results(unpacked)
    assert merge([block, done], tmp_path / "study").added == 3
    assert evaluations(tmp_path / "study") == evaluations(done)
    assert len(load_runs(tmp_path / "study").runs) == 2


def test_two_merges_into_one_archive_do_not_undo_each_other(tmp_path: Path) -> None:
    """The second one reads the archive before the first has replaced it."""
    first, second, third = (made(tmp_path / str(seed), "ewc", [seed]) for seed in range(3))
    study = tmp_path / "study.tar.gz"
    for other in (first, second):  # to a new archive, and to one that was there
        with pytest.raises(UserError, match="gz: changed meanwhile"), _written(study) as folder:
            shutil.copytree(third, folder, dirs_exist_ok=True)
            merge([other], study)
    with opened(study) as unpacked:
        assert evaluations(unpacked) == evaluations(first) | evaluations(second)
    assert not list(tmp_path.glob(".*"))


def test_an_experiment_is_taken_out_of_a_folder_of_several(tmp_path: Path) -> None:
    """Both have EWC's seed 0 in common; an unknown name writes nothing."""
    both = tmp_path / "both"
    for name, method, seeds in (("a", "ewc", [0, 1]), ("b", "ewc", [0]), ("b", "mas", [0])):
        write_results(
            both, sequence_names=["cw3-1"], settings=[small(method)], seeds=seeds, name=name
        )
    alone = made(tmp_path / "alone", "ewc", [0, 1])
    with pytest.raises(UserError, match="--experiment c: no such experiment; there are a, b"):
        merge([both], tmp_path / "taken", experiments=["a", "c"])
    assert not (tmp_path / "taken").exists()
    assert merge([both], tmp_path / "taken", experiments=["a"]).added == 6
    assert evaluations(tmp_path / "taken") == evaluations(alone)
    assert merge([both], tmp_path / "taken", experiments=["b"]).added == 3
    assert evaluations(tmp_path / "taken") == evaluations(both)


def test_with_one_experiment_goes_nothing_of_the_others(tmp_path: Path) -> None:
    """Not their code, which may be unpublished, their tuning, or their unfinished segments."""
    results = tmp_path / "results"
    for method, source, upto in (("ewc", None, None), ("mine", "1a2b3c4d5e6f", 0.5)):
        settings = [small(method, source=source)]
        write_results(
            results, sequence_names=["cw3-1"], settings=settings, seeds=[0], name=method, upto=upto
        )
        chosen = {"method": method, "options": {"coef": 1.0}, "on": ["cw3-1"], "settings": []}
        tuning.write(results, chosen)
    Store(results).add_source("1a2b3c4d5e6f", b"class Mine: ...")
    done = merge([results], tmp_path / "ewc", experiments=["ewc"])
    assert (done.added, done.unfinished) == (3, [])
    assert not list(tmp_path.glob("ewc/sources/*"))
    assert [file.name[:4] for file in tmp_path.glob("ewc/tuning/*")] == ["ewc-"]
    done = merge([results], tmp_path / "mine", experiments=["mine"])
    assert (done.added, len(done.unfinished)) == (1, 1)
    assert [file.name for file in tmp_path.glob("mine/sources/*")] == ["1a2b3c4d5e6f.py"]
    assert [file.name[:5] for file in tmp_path.glob("mine/tuning/*")] == ["mine-"]


def test_weights_and_unfinished_segments_stay_behind(tmp_path: Path) -> None:
    source = made(tmp_path / "a", "ewc", [0], upto=0.5)  # half of the second of three tasks
    [first] = source.glob("segments/ewc-1-*")
    (first / "end.safetensors").write_bytes(b"weights")
    done = merge([source], tmp_path / "records")
    assert len(done.unfinished) == 1
    assert [p.name for p in (tmp_path / "records" / "segments").iterdir()] == [first.name]
    names = {p.name for p in (tmp_path / "records" / "segments" / first.name).iterdir()}
    assert names == {"segment.json", "status.json", "evals.csv", "train.csv"}
    assert not [d for d in damages(tmp_path / "records", full_check) if d.segment == first.name]
    merge([source], tmp_path / "all", weights=True)
    copy = tmp_path / "all" / "segments" / first.name / "end.safetensors"
    assert copy.read_bytes() == b"weights"


def test_a_finished_segment_replaces_an_unfinished_one(tmp_path: Path) -> None:
    target = made(tmp_path / "a", "ewc", [0], upto=0.5)  # half of the second of three tasks
    whole = made(tmp_path / "b", "ewc", [0])
    [half] = (p for p in target.glob("segments/*") if SegmentFolder(p).state != "done")
    with Claims() as mine:
        assert mine.take(SegmentFolder(half))
        done = merge([whole], target)
    assert (done.added, done.present, len(done.problems)) == (1, 1, 1)
    assert f"{half.name} is being trained" in done.problems[0]
    assert merge([whole], target).added == 1  # nobody is at work there now
    assert evaluations(target) == evaluations(whole)
    assert not list(target.glob("segments/.*"))


def test_processes_that_come_during_a_merge_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finds the unfinished segment taken; what another began or merged itself stays."""
    target, whole = made(tmp_path / "a", "ewc", [0], upto=0.5), made(tmp_path / "b", "ewc", [0])
    copy2, tried = shutil.copy2, []

    def slow(file: Path, half: Path) -> None:
        copy2(file, half)
        segment = target / "segments" / file.parent.name
        if file.name == "evals.csv" and segment.exists():
            with Claims() as other:
                tried.append(other.take(SegmentFolder(segment)))
        elif file.name == "evals.csv":
            shutil.copytree(file.parent, segment)

    monkeypatch.setattr(shutil, "copy2", slow)
    done = merge([whole], target)
    assert tried == [False] and (done.added, done.present, len(done.problems)) == (1, 1, 1)
    [last] = target.glob("segments/ewc-3-*")
    assert done.problems[0].startswith(f"{last.name} has changed in")
    assert not SegmentFolder(last).records_only and not list(target.glob("segments/.*"))
    assert not list(target.glob("segments/*/claim.json"))


def test_a_paused_segment_is_replaced_by_nothing_less_than_weights(tmp_path: Path) -> None:
    target, whole = made(tmp_path / "a", "ewc", [0], upto=0.5), made(tmp_path / "b", "ewc", [0])
    [paused] = (p for p in target.glob("segments/*") if SegmentFolder(p).state != "done")
    there, here = SegmentFolder(paused), SegmentFolder(whole / "segments" / paused.name)
    there.snapshot.parent.mkdir()
    there.snapshot.write_bytes(b"weights in the middle")
    for weights in (False, True):  # the source has none
        told = merge([whole], target, weights=weights)
        assert there.snapshot.exists() and there.state == "running"
        assert [line for line in told.problems if f"{paused.name} is paused in" in line]
    here.end.write_bytes(b"weights")
    assert merge([whole], target, weights=True).added == 1
    assert there.done and there.end.exists() and not there.snapshot.exists()


def test_weights_can_be_added_later(tmp_path: Path) -> None:
    source = made(tmp_path / "a", "ewc", [0])
    [first] = source.glob("segments/ewc-1-*")
    (first / "end.safetensors").write_bytes(b"weights")
    records = tmp_path / "records"
    merge([source], records)
    assert merge([source], records, weights=True).added == 3
    copy = SegmentFolder(records / "segments" / first.name)
    assert copy.end.read_bytes() == b"weights" and not copy.records_only
    assert merge([source], records, weights=True).present == 3


def test_weights_that_no_source_has_are_not_looked_for_again(tmp_path: Path) -> None:
    records, target = tmp_path / "records", tmp_path / "target"
    merge([made(tmp_path / "a", "ewc", [0])], records)
    assert merge([records], target, weights=True).added == 3
    assert merge([records], target, weights=True).present == 3


def test_transitions_that_were_cleaned_can_be_added_again(tmp_path: Path) -> None:
    source, target = made(tmp_path / "a", "ewc", [0]), tmp_path / "b"
    [path] = source.glob("segments/ewc-1-*")
    first = SegmentFolder(path)
    first.replay.mkdir()
    (first.replay / "transitions.npy").write_bytes(b"transitions")
    first.set_status("done", checksums=first.seal())
    merge([source], target, weights=True)
    copy = SegmentFolder(target / "segments" / path.name)
    shutil.rmtree(copy.replay)
    assert copy.cleaned and merge([source], target).added == 0
    assert merge([source], target, weights=True).added == 1 and not copy.cleaned


def test_what_options_were_chosen_on_is_known_after_a_merge(tmp_path: Path) -> None:
    source = made(tmp_path / "a", "ewc", [0])
    setting = {"options": {"coef": 1.0}, "score": 0.5, "low": 0.4, "high": 0.6, "runs": 2}
    chosen = {"method": "ewc", "options": {"coef": 1.0}, "on": ["cw3-1"], "settings": [setting]}
    file = tuning.write(source, chosen)
    for _ in range(2):
        merge([source], tmp_path / "b")
    [copy] = (tmp_path / "b" / "tuning").iterdir()
    assert (copy.name, copy.read_text()) == (file.name, file.read_text())
    push(source, str(tmp_path / "pushed"))
    assert [f.name for f in (tmp_path / "pushed" / "tuning").iterdir()] == [file.name]


def test_a_target_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    source, target = made(tmp_path / "a", "ewc", [0]), tmp_path / "b"
    merge([source], target)
    [record] = target.glob("segments/ewc-1-*/segment.json")
    newer = json.dumps(json.loads(record.read_text()) | {"schema": 99})
    record.write_text(newer)
    with pytest.raises(UserError, match="written by a newer cwbench"):
        merge([source], target)
    assert record.read_text() == newer


def test_different_numbers_under_one_id_are_refused(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", "ewc", [0]), made(tmp_path / "b", "ewc", [0])
    [file] = b.glob("segments/ewc-3-*/evals.csv")
    lines = file.read_text().splitlines()
    step, position, task, episodes, successes, mean_return = lines[-1].split(",")
    other = str((int(successes) + 1) % 3)
    lines[-1] = ",".join([step, position, task, episodes, other, mean_return])
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match="has different evaluations"):
        merge([a, b], tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("name", ["evals.csv", "segment.json"])
def test_numbers_other_than_the_targets_are_refused(name: str, tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", "ewc", [0]), made(tmp_path / "b", "ewc", [0])
    target = tmp_path / "c"
    merge([a], target)
    before = evaluations(target)
    [file] = b.glob(f"segments/ewc-3-*/{name}")
    if name == "evals.csv":
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    else:
        file.write_text(json.dumps(json.loads(file.read_text()) | {"id": "0" * 12}))
    with pytest.raises(UserError, match="has different evaluations"):
        merge([b], target)
    assert evaluations(target) == before


def test_a_diverged_segment_is_merged_and_stays(tmp_path: Path) -> None:
    """Its run is in no mean, and reports say so."""
    source, target = made(tmp_path / "a", "ewc", [0]), tmp_path / "b"
    [last] = source.glob("segments/ewc-3-*")
    SegmentFolder(last).set_status("diverged")
    assert merge([source], target).added == 3
    assert SegmentFolder(target / "segments" / last.name).state == "diverged"
    assert merge([source], target).present == 3


@pytest.mark.parametrize("what", ["missing", "a file", "a folder", "newer", "an archive"])
def test_what_is_no_results_folder_is_refused(what: str, tmp_path: Path) -> None:
    source = tmp_path / ("a.tar.gz" if what == "an archive" else "a")
    if what in ("a file", "an archive"):
        source.write_text("text")
    elif what == "a folder":
        source.mkdir()
    elif what == "newer":
        [first, *_] = made(source, "ewc", [0]).glob("segments/*/segment.json")
        first.write_text(json.dumps(json.loads(first.read_text()) | {"schema": 99}))
    result = CliRunner().invoke(cli, ["merge", str(source), "--into", str(tmp_path / "c")])
    assert isinstance(result.exception, UserError)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("linked", ["segments", "one segment", "experiments", "sources", "tuning"])
def test_nothing_is_merged_through_links_of_the_target(linked: str, tmp_path: Path) -> None:
    source, target, home = made(tmp_path / "a", "ewc", [0]), tmp_path / "b", tmp_path / "home"
    home.mkdir()
    [first] = source.glob("segments/ewc-1-*")
    link = target / ("segments/" + first.name if linked == "one segment" else linked)
    link.parent.mkdir(parents=True)
    link.symlink_to(home)
    before = sorted(target.rglob("*"))
    with pytest.raises(UserError, match="leads out of"):
        merge([source], target)
    assert not list(home.iterdir()) and sorted(target.rglob("*")) == before


def test_files_that_links_of_a_source_lead_to_are_not_copied(tmp_path: Path) -> None:
    """Into an archive that may be published."""
    source, secret = made(tmp_path / "a", "ewc", [0]), tmp_path / "secret"
    secret.write_text("a password")
    for name in ("sources", "tuning"):
        (source / name).mkdir(exist_ok=True)
    (source / "sources" / "0123456789ab.py").symlink_to(secret)
    (source / "tuning" / "ewc-0123456789ab.json").symlink_to(secret)
    done = merge([source], tmp_path / "b")
    assert done.added == 3 and len(done.problems) == 2
    assert all("leads out of" in problem for problem in done.problems)
    assert not list(tmp_path.glob("b/sources/*")) and not list(tmp_path.glob("b/tuning/*"))


def test_a_changed_experiment_is_named_and_not_merged(tmp_path: Path) -> None:
    """Under the name of its new content it would look as if it had been asked for."""
    source = made(tmp_path / "a", "ewc", [0, 1])
    [file] = source.glob("experiments/*.json")
    file.write_text(file.read_text().replace('"seed": 1', '"seed": 0'))
    told = CliRunner().invoke(cli, ["merge", str(source), "--into", str(tmp_path / "b")])
    assert told.exit_code == 1 and "6 segments added" in told.output
    assert f"problem: experiments/{file.name}: changed since it was written" in told.output
    assert not list(tmp_path.glob("b/experiments/*.json"))

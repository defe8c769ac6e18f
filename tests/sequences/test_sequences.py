"""The published lists, and every way to name a sequence."""

from pathlib import Path

import pytest

from cwbench import sequences


def test_triplets_are_the_published_ones() -> None:
    assert sequences.get("cw3-1").tasks == ("push", "window-close", "hammer")
    assert sequences.get("cw3-4").tasks == ("push-wall", "shelf-place", "push-back")
    assert sequences.get("cw3-6").tasks == ("stick-pull", "peg-unplug-side", "stick-pull")
    assert sequences.get("cw3-8").tasks == ("faucet-close", "shelf-place", "peg-unplug-side")


def test_longer_sequences_repeat() -> None:
    for number in range(1, 9):
        triplet = sequences.get(f"cw3-{number}").tasks
        assert sequences.get(f"cw6-{number}").tasks == triplet * 2
    assert sequences.get("cw20").tasks == sequences.get("cw10").tasks * 2
    assert len(set(sequences.get("cw10").tasks)) == 10


def test_the_papers_example_pair() -> None:
    assert sequences.get("pair-5-0").tasks == ("handle-press-side", "hammer")


def test_lists_and_files(tmp_path: Path) -> None:
    assert sequences.get("push, hammer").tasks == ("push", "hammer")
    assert sequences.get("single-push").tasks == ("push",)
    file = tmp_path / "mine.toml"
    file.write_text('tasks = ["push", "push"]\n')
    assert sequences.get(str(file)) == sequences.Sequence("mine", ("push", "push"))
    assert sequences.get("basketball,push").tasks == ("basketball", "push")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cw3-9", "did you mean 'cw3-"),
        ("pair-1-10", "from 0 to 9"),
        ("single-pusch", "did you mean 'push'"),
        ("push,hamer", "did you mean 'hammer'"),
        ("missing.toml", "No such file"),
    ],
)
def test_bad_names_say_what_is_near(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sequences.get(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('tasks = ["push"]\ntask = 3', r"unknown keys \['task'\]"),
        ("tasks = []", "one or more task names"),
        ("tasks = 3", "one or more task names"),
        ('tasks = ["push"]\nname = "a/b"', "may hold"),
        ('tasks = ["push"]\nname = "cw10"', "published sequence"),
        ("tasks = [", "file"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        sequences.get(str(file))


def test_a_star_stands_for_anything() -> None:
    assert [one.name for one in sequences.expand("cw3-*")] == [f"cw3-{n}" for n in range(1, 9)]
    assert len(sequences.expand("pair-*-*")) == 100
    assert sequences.expand("pair-5-*")[0] == sequences.get("pair-5-0")
    assert [one.tasks for one in sequences.expand("single-*")] == [(t,) for t in sequences.CW_TASKS]
    assert sequences.expand("cw10") == [sequences.get("cw10")]
    with pytest.raises(ValueError, match="like 'cw4-\\*'"):
        sequences.expand("cw4-*")

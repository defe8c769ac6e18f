"""The published lists, and every way to name a sequence."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cwbench import sequences
from cwbench.spec.tasks import CW_TASKS, METAWORLD_TASKS


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


def test_pairs_of_any_sequence() -> None:
    found, whole = sequences.get("pair-pendulum3-2-0"), sequences.get("pendulum3")
    assert found.tasks == ("pendulum-earth", "pendulum-moon")
    assert found.definitions == whole.definitions  # one setup for all pairs
    assert sequences.get("pair-cw20-5-0") == sequences.get("pair-5-0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cw3-9", "did you mean 'cw3-"),
        ("pair-1-10", "from 0 to 9"),
        ("pair-pendulum3-0-3", "from 0 to 2"),
        ("pair-pendulum-0-1", "unknown sequence 'pendulum'"),
        ("single-pusch", "did you mean 'push'"),
        ("push,hamer", "did you mean 'hammer'"),
        ("cw3-1,cw3-7", "'cw3-1' is a sequence, not a task; give `--seq` once for each"),
        ("push,pair-0-1", "'pair-0-1' is a sequence, not a task"),
        ("single-push,hammer", "'single-push' is a sequence, not a task"),
        ("missing.toml", "no such file"),
    ],
)
def test_bad_names_say_what_is_near(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sequences.get(text)


def test_a_star_stands_for_anything() -> None:
    assert [one.name for one in sequences.expand("cw3-*")] == [f"cw3-{n}" for n in range(1, 9)]
    assert len(sequences.expand("pair-*-*")) == 100
    assert sequences.expand("pair-5-*")[0] == sequences.get("pair-5-0")
    assert [one.tasks for one in sequences.expand("single-*")] == [(t,) for t in sequences.CW_TASKS]
    assert sequences.expand("cw10") == [sequences.get("cw10")]
    with pytest.raises(ValueError, match="like 'cw4-\\*'"):
        sequences.expand("cw4-*")


def test_named_sequences_consist_of_known_tasks() -> None:
    for name in sequences.names():
        sequence = sequences.get(name)
        assert sequence.name == name and sequence.source
        if sequence.suite == "metaworld":
            assert set(sequence.tasks) <= set(METAWORLD_TASKS)
    assert sequences.get("cw100").tasks == CW_TASKS * 10
    assert len(sequences.get("rd-hard").tasks) == len(sequences.get("rd-easy").tasks) == 8
    assert len(set(sequences.get("mt10").tasks)) == 10
    assert sequences.get("mt50").tasks == tuple(sorted(METAWORLD_TASKS))


def test_reset_and_distill_shuffles_by_seed() -> None:
    """As scikit-learn does: the release's list, in alphabetical order, by numpy's generator."""
    listed = sorted(sequences.get("rd-random-0").tasks)
    for seed in range(3):
        order = np.arange(8)
        np.random.RandomState(seed).shuffle(order)
        assert sequences.get(f"rd-random-{seed}").tasks == tuple(listed[task] for task in order)


def test_random_orders_are_fixed_and_differ() -> None:
    first, second = (sequences.get(f"orders-cw10-{number}").tasks for number in (0, 1))
    assert first != second and sorted(first) == sorted(second) == sorted(CW_TASKS)
    assert sequences.get("orders-cw10-3").tasks[:3] == (
        "window-close",
        "handle-press-side",
        "shelf-place",
    )


def test_tasks_of_one_sequence_belong_to_one_suite() -> None:
    assert sequences.get("reach-0-1,reach-2-1").suite == "pointmass"
    assert sequences.get("single-reach-4-1").tasks == ("reach-4-1",)
    with pytest.raises(ValueError, match="all tasks must be of one suite"):
        sequences.get("reach-0-1,push")


LINE = """
import sys
from cwbench.spec.config import ENV_CONFIGS, EnvConfig


class LineConfig(EnvConfig):
    suite = "line"
    task_names = ("line-0-1", "line-2-1")


ENV_CONFIGS["line"] = LineConfig
from cwbench import sequences
from cwbench.cli import main

texts = ("line-2-1", "single-line-2-1", "line-0-1,line-2-1", sys.argv[1])
print(*(sequences.get(text).suite for text in texts))
main(["tasks"])
"""


def test_tasks_of_a_new_suite_are_found_by_its_config(tmp_path: Path) -> None:
    """In a process of its own: the table of tasks is made when it is imported."""
    file = tmp_path / "mine.toml"
    file.write_text('suite = "line"\ntasks = ["line-2-1"]')
    made = subprocess.run([sys.executable, "-c", LINE, str(file)], capture_output=True, text=True)
    found = [row.split() for row in made.stdout.splitlines() if "line" in row.split()]
    assert found == [["line"] * 4, ["line-0-1", "line"], ["line-2-1", "line"]], made.stderr

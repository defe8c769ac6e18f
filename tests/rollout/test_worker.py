"""What a worker does while weights are on their way, and without a parent."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import countdown
import pytest
import torch
from point_lanes import CPU, actions, finish_evaluations, heading, job, open_lanes

from cwbench.fleet.weight_sync import WeightPublisher
from cwbench.learner.policy import make_policy
from cwbench.rollout.collector import Collector
from cwbench.rollout.episodes import EvalResult, LaneSpec
from cwbench.rollout.pool import Pool, WorkerError
from cwbench.rollout.shared_memory import ArrayRef, SharedArray
from cwbench.spec.config import EnvConfig, NetworkConfig
from cwbench.spec.tasks import Task


def test_a_worker_evaluates_until_the_weights_are_there(
    pool: Pool, shared: Callable[..., ArrayRef]
) -> None:
    collector = open_lanes(pool)
    publisher = WeightPublisher(collector.weights.array, collector.version.array, CPU)
    publisher.start(torch.from_numpy(heading(-1))[None])
    collector.request(5, publisher.version + 1)
    results: list[EvalResult] = []
    pool.evaluate(job(shared(heading(1))), results.append)
    finish_evaluations(pool)
    # Collecting goes first, so it would have come before the evaluation.
    assert len(results) == 1 and not collector.episodes
    publisher.start(torch.from_numpy(heading(1))[None])
    chunk, _ = collector.receive()
    assert (actions(chunk) == 1).all()
    collector.close()


def test_a_worker_collects_for_another_group_meanwhile(pool: Pool) -> None:
    late, ready = open_lanes(pool), open_lanes(pool)
    ready.weights.array[:] = heading(-1)
    late.request(5, 1)
    ready.request(5, 0)
    chunk, _ = ready.receive()
    assert (actions(chunk) == -1).all() and not late.episodes
    late.weights.array[:] = heading(1)
    late.version.array[:] = 1
    chunk, _ = late.receive()
    assert (actions(chunk) == 1).all()
    for collector in (late, ready):
        collector.close()


def test_a_worker_whose_parent_is_gone_ends_quietly() -> None:
    """The array it shares with the parent went with it."""
    code = (
        "from multiprocessing import Pipe\n"
        "from cwbench.rollout.shared_memory import SharedArray\n"
        "from cwbench.rollout.worker import work\n"
        "(connection, _), beats = Pipe(), SharedArray((2,))\n"
        "beats.close()\n"
        "work(connection, None, beats.ref)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")


ENV_FILE = "from countdown import Countdown\n\nclass Own(Countdown):\n    later = 1\n"


@pytest.fixture(
    params=[
        ("= = 1", r"cannot import a task: .*own_.*\.py line 4: SyntaxError: invalid syntax\n$"),
        ("= 2", r"task own: own_.*:Own has changed since the task was made; reload .*\n$"),
    ]
)
def edited(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[EnvConfig, str]:
    """An environment whose file was edited after this process had imported it; the error."""
    edit, words = request.param
    file = tmp_path / f"own_{tmp_path.name}.py"
    file.write_text(ENV_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    config = countdown.configured(Task("own", importlib.import_module(file.stem).Own, horizon=10))
    file.write_text(ENV_FILE.replace("= 1", edit))
    return config, words


def test_a_worker_refuses_a_file_that_was_edited_and_says_where(
    edited: tuple[EnvConfig, str],
) -> None:
    """Whether its lanes or an evaluation come first. Other work of the worker goes on."""
    env, words = edited
    layout = make_policy(1, 2, NetworkConfig(width=8, layers=2)).layout(1)
    weights, results = SharedArray((1, layout.size)), list[EvalResult]()
    others = SharedArray((1, heading(1).size))
    with Pool(1) as pool:
        lanes = [LaneSpec(0, 0, 0, 0, ((0, "own"),), 0, ())]
        collector = Collector(pool, lanes, layout, env, runs=1, longest=5, width=7, states={})
        collector.request(5, 0)
        with pytest.raises(WorkerError, match=words):
            collector.receive()
        pool._fail(collector.key, "what followed")
        assert collector.failure != "what followed"
        collector.close()
        job_of_own = replace(job(weights.ref), task="own", env=env, layout=layout)
        pool.evaluate(job_of_own, results.append)
        with pytest.raises(WorkerError, match=words):
            finish_evaluations(pool)
        pool.evaluate(job(others.ref), results.append)
        finish_evaluations(pool)
        assert len(results) == 1
    for array in (weights, others):
        array.close()


def test_a_worker_that_has_imported_a_file_needs_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the code that tasks were made with, whatever the file holds when others follow."""
    file, text = (
        tmp_path / f"kept_{tmp_path.name}.py",
        f"{ENV_FILE}\ndef make():\n    return Own()\n",
    )
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(file.stem)
    first, same, later = (
        countdown.configured(Task("own", env, horizon=n))
        for env, n in ((module.Own, 10), (module.Own, 12), (module.make, 10))
    )
    layout = make_policy(1, 2, NetworkConfig(width=8, layers=2)).layout(1)
    weights, results = SharedArray((1, layout.size)), list[EvalResult]()
    with Pool(1) as pool:
        for env in (first, same, later):
            pool.evaluate(
                replace(job(weights.ref), task="own", env=env, layout=layout), results.append
            )
            finish_evaluations(pool)
            file.write_text("\n" + text.replace("= 1", "= 2"))
    assert len(results) == 3
    weights.close()

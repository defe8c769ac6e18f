"""Worker processes that die or hang at random moments change no number."""

import random
from pathlib import Path
from typing import Any

import pytest
from faults import count, times
from lost_workers import Fault, hang, kill, lose
from outcomes import outcome_files

RUN: dict[str, Any] = {"seeds": (0, 1), "tasks": ("reach-0-1", "reach-2-1000")}
RUN |= {"snapshot_seconds": 0.0}
CHUNKS = 12  # of a run; every third loses a worker


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:worker .* it is replaced:RuntimeWarning")
@pytest.mark.parametrize("fault", [kill, hang], ids=["SIGKILL of a worker", "hung worker"])
def test_lost_workers(
    fault: Fault, toy_run: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    toy_run(tmp_path / "whole", "recall", **RUN)
    expected, rng = outcome_files(tmp_path / "whole"), random.Random(0)
    for n in range(times(3)):
        lost = {rng.randint(i, i + 2): (fault, rng.randrange(2)) for i in range(1, CHUNKS, 3)}
        with pytest.MonkeyPatch.context() as patch:
            chunks = lose(patch, lost, after=rng.random() < 0.5)
            _, _, outcome = toy_run(tmp_path / str(n), "recall", **RUN)
        right = outcome.good and outcome_files(tmp_path / str(n)) == expected
        assert len(chunks) >= CHUNKS
        for _ in lost:
            count(request.node.callspec.id, survived=right, silent=not right)
        assert right, (lost, outcome)

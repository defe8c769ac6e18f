"""Which processes draw a report's figures."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from cwbench.reports import build


def test_figures_are_drawn_in_this_process_where_cuda_is_in_use(
    triplets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked process inherits CUDA objects and dies when it frees them."""
    study = build.read(triplets)
    with build._drawers(2, study) as pool:
        assert isinstance(pool, ProcessPoolExecutor)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    index, name, _ = build.figure_plan(study, tmp_path)[0]
    for report in ("first", "second"):  # one after the other in one process
        with build._drawers(2, study) as pool:
            assert isinstance(pool, ThreadPoolExecutor)
            pool.submit(build._draw, index, name, tmp_path / report).result()
        assert (tmp_path / f"{report}.pdf").stat().st_size > 0

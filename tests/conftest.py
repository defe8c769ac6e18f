"""Fixtures: a small trainer, and whole runs on the point-mass toy with real worker processes."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from torch import Tensor

from cwbench.experiment.toy import ToyResult, train_toy
from cwbench.learner.compiler import missing_compiler
from cwbench.learner.method import Method
from cwbench.learner.replay import Replay
from cwbench.learner.trainer import Trainer
from cwbench.rollout.pool import Pool
from cwbench.spec.config import Gradients, MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.spec.transition import Dims
from cwbench.store import files

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small tensors: threads would only wait for each other."""
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment] # see `cwbench.experiment.execution.set_up_torch`


@pytest.fixture(scope="session", autouse=True)
def wide_tables() -> None:
    """Processes of pytest-xdist have a terminal's width, though no terminal."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True)
def small_heap() -> None:
    """Every training ends with a garbage collection, which would visit all imported modules.

    Tests import more of them: 70,000 objects take 45 ms.
    """
    if len(gc.get_objects(2)) > 10_000:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_sync() -> Iterator[None]:
    """Many small files are written; waiting for the disk would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "sync", lambda path: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that tests start leave the user's cache alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CWBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def full_precision() -> Iterator[None]:
    """Products on CUDA in float32, not TF32."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.fixture
def double_precision(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For all tensors made in the test."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def make_trainer() -> Callable[..., Trainer]:
    """A trainer with random transitions of its own in the replay: run r's depend on its seed."""

    def make(
        seeds: list[int],
        *,
        position: int = 0,
        sac: SACConfig | None = None,
        network: NetworkConfig | None = None,
        rows: int = 200,
        method: Callable[[Trainer], Method[Any]] = lambda trainer: Method(MethodConfig(), trainer),
        inherited: Mapping[str, Tensor] | None = None,
        gradients: Gradients = "manual",
    ) -> Trainer:
        trainer = Trainer(
            seeds,
            position,
            dims=Dims(12, 4),
            sac=sac or SACConfig(batch_size=16),
            network=network or NetworkConfig(width=16),
            schedule=ScheduleConfig(),
            device=torch.device("cpu"),
            gradients=gradients,
        )
        replay = Replay(len(seeds), rows, Dims(12, 4), trainer.streams, live=[position])
        data = [
            torch.randn(rows, 29, generator=torch.Generator().manual_seed(seed)) for seed in seeds
        ]
        replay.add(position, torch.stack(data))
        trainer.begin(method(trainer), replay, inherited=inherited)
        return trainer

    return make


@pytest.fixture
def without_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with none, for Python that has not looked for them."""
    from torch._inductor import cpp_builder

    looked = (cpp_builder.cpp_compiler_search, missing_compiler)
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
    for search in looked:
        search.cache_clear()
    yield
    for search in looked:
        search.cache_clear()


@pytest.fixture(scope="session")
def toy_pool() -> Iterator[Pool]:
    with Pool(2) as pool:
        yield pool


ToyRun = Callable[..., ToyResult]


@pytest.fixture(scope="session")
def toy_run(toy_pool: Pool) -> ToyRun:
    """Train methods on the toy tasks into a folder, as `cwbench run` would."""
    return partial(train_toy, toy_pool)

"""How to train: what is left open is settled, and said again to other processes."""

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest
import torch

from cwbench.cli.options import click_options
from cwbench.experiment.execution import Execution, Launching, set_up_torch, torch_set_up
from cwbench.spec.options import resolve


@pytest.mark.parametrize(
    ("given", "device", "steps", "compiled"),
    [
        (None, "cuda", 250_000, True),
        (None, "cuda", 600, False),  # compiling would take longer than training
        (None, "cpu", 10**6, False),
        (False, "cuda", 10**6, False),
        (True, "cpu", 600, True),
    ],
)
def test_compiles_where_it_pays_or_is_asked_for(
    given: bool | None, device: str, steps: int, compiled: bool
) -> None:
    execution = Execution(compile=given)
    assert execution.settled(torch.device(device), steps).compile == compiled
    # A job elsewhere decides for itself what was left open.
    flags = [flag for flag in execution.arguments() if "compile" in flag]
    assert flags == {None: [], True: ["--compile"], False: ["--no-compile"]}[given]


@pytest.mark.parametrize(
    "execution",
    [
        Execution(),
        Execution(device="cpu", workers=3, threads=2, tf32=False),
        Execution(fleet_size=5, compile=False, snapshot_minutes=0.25, worker_timeout=30),
    ],
)
def test_arguments_say_the_same_to_another_process(execution: Execution) -> None:
    import click

    command = click.Command("train", params=list(click_options(Execution, group="")))
    given: dict[str, Any] = command.make_context("train", execution.arguments()).params
    assert resolve(Execution, given) == execution


def test_defaults_are_those_of_the_command_line() -> None:
    import click

    command = click.Command("run", params=list(click_options(Launching, group="")))
    assert resolve(Launching, command.make_context("run", []).params) == Launching()


def test_plans_are_measured_with_one_thread_unless_asked_otherwise() -> None:
    """Two threads on a busy machine take a hundred times as long."""
    set_up_torch(Execution(threads=2))
    assert torch.get_num_threads() == 2
    set_up_torch(Execution())
    assert torch.get_num_threads() == 1


def test_settings_of_torch_end_with_the_block() -> None:
    """Two threads, oneDNN and no TF32 are the caller's, also after an error."""

    def settings() -> tuple[object, ...]:
        backends = torch.backends
        return backends.mkldnn.enabled, backends.cuda.matmul.allow_tf32, torch.get_num_threads()

    before = settings()
    torch.set_num_threads(2)
    torch.backends.mkldnn.enabled = True  # type: ignore[assignment]
    try:
        with pytest.raises(KeyError), torch_set_up(Execution(threads=3)):
            assert settings() == (False, True, 3)
            raise KeyError
        assert settings() == (True, before[1], 2)
    finally:
        set_up_torch(Execution(threads=1, tf32=bool(before[1])))


PRECISIONS = {
    "the default": lambda: None,
    "allow_tf32": lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
    "fp32_precision": lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    "all backends": lambda: setattr(torch.backends, "fp32_precision", "tf32"),
    "medium": lambda: torch.set_float32_matmul_precision("medium"),
    "high": lambda: torch.set_float32_matmul_precision("high"),
}


def _precision() -> list[object]:
    def read(get: Callable[[], object]) -> object:
        try:
            return get()
        except RuntimeError:  # torch does not say what was written by its other interface
            return None

    backends: Any = torch.backends
    newer = [backends.cuda.matmul.fp32_precision, backends.mkldnn.matmul.fp32_precision]
    return [*newer, read(torch.get_float32_matmul_precision)]


@pytest.mark.filterwarnings("ignore")  # torch's, on its older interface
@pytest.mark.parametrize("tf32", [True, False])
@pytest.mark.parametrize("name", PRECISIONS)
def test_the_precision_of_products_ends_with_the_block(name: str, tf32: bool) -> None:
    """By whichever of torch's interfaces it was chosen, and the choice is in force inside."""
    process = multiprocessing.get_context("fork")  # settings of torch are of a whole process
    with process.Pool(1) as pool:
        before, inside, after = pool.apply(_around, (name, tf32))
    assert inside == ("tf32" if tf32 else "ieee")
    assert after[:2] == before[:2]
    assert before[2] is None or after == before


def _around(name: str, tf32: bool) -> tuple[list[object], object, list[object]]:
    PRECISIONS[name]()
    before = _precision()
    with torch_set_up(Execution(tf32=tf32)):
        inside = torch.backends.cuda.matmul.fp32_precision
    return before, inside, _precision()

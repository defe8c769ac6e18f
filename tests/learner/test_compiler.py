"""What is compiled, and where that is not possible."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import torch

from cwbench.learner import compiler
from cwbench.learner.gradients import sac_gradients
from cwbench.learner.losses import q_values


@pytest.fixture
def forget_compiler() -> Iterator[None]:
    """Whether a compiler is there is looked for once."""
    for known in (compiler._compiled, compiler._has_compiler):
        known.cache_clear()
    yield
    for known in (compiler._compiled, compiler._has_compiler):
        known.cache_clear()


@pytest.mark.usefixtures("forget_compiler")
def test_without_a_compiler_updates_are_plain_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import cpp_builder, exc

    def missing() -> str:
        raise exc.InvalidCxxCompiler()

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", missing)
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler") as said:
        for function in (sac_gradients, q_values):
            assert compiler.compiled(function, "cpu") is function
    assert len(said) == 1


@pytest.mark.usefixtures("forget_compiler")
@pytest.mark.filterwarnings("default::DeprecationWarning")  # the compiler's own
@pytest.mark.parametrize(("triton", "cc"), [(False, "gcc"), (True, None), (True, "gcc")])
def test_on_a_gpu_triton_and_a_c_compiler_are_needed(
    triton: bool, cc: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module("torch._inductor.compile_fx")  # or it would import, and keep, what comes next
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: triton)
    monkeypatch.setattr("shutil.which", lambda name: name == cc or None)
    if triton and cc:
        assert compiler.compiled(sac_gradients, "cuda") is not sac_gradients
        return
    with pytest.warns(UserWarning, match="no Triton or no C compiler"):
        assert compiler.compiled(sac_gradients, "cuda") is sac_gradients


def test_what_is_compiled_is_announced() -> None:
    torch.compiler.reset()
    events = []

    def compiling(graph: Any, _: object) -> Any:
        events.append("compile")
        return graph.forward

    function = torch.compile(torch.cos, backend=compiling)
    with compiler.around_compilations(lambda: events.append("begin"), lambda: events.append("end")):
        for _ in range(2):  # the second call only runs it
            function(torch.zeros(1))
    function(torch.zeros(2, 2))
    assert events == ["begin", "compile", "end", "compile"]

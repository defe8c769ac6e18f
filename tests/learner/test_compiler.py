"""What is compiled, and where that is not possible."""

from pathlib import Path
from typing import Any

import pytest
import torch

from cwbench.learner import compiler


@pytest.mark.usefixtures("without_compilers")
def test_what_is_missing_is_named_with_what_to_install() -> None:
    assert compiler.missing_compiler("cpu") == "no C++ compiler; install one, e.g. the package g++"
    assert compiler.missing_compiler("cuda") == "no C compiler; install one, e.g. the package gcc"


def test_a_compiler_that_is_there_is_enough_for_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_compilers: None
) -> None:
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler.missing_compiler("cpu") == ""


@pytest.mark.parametrize(("triton", "lacks"), [(True, ""), (False, "no Triton for this GPU")])
def test_on_a_gpu_a_c_compiler_and_triton_are_enough(
    triton: bool, lacks: str, monkeypatch: pytest.MonkeyPatch, without_compilers: None
) -> None:
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: triton)
    monkeypatch.setattr("shutil.which", lambda name: name == "gcc" or None)
    assert compiler.missing_compiler("cuda").partition(";")[0] == lacks


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

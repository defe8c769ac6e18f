"""Pure functions of tensors, compiled. Everything that is compiled goes through here."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@cache
def missing_compiler(device: str) -> str:
    """What compiling for a type of device lacks here and how to get it; empty if nothing.

    Whoever decides to compile asks this first: what could not be compiled fails when it is called.
    """
    if device == "cpu":
        from torch._inductor import cpp_builder, exc

        try:
            cpp_builder.get_cpp_compiler()
        except exc.InvalidCxxCompiler:
            return "no C++ compiler; install one, e.g. the package g++"
        return ""
    from torch.utils import _triton

    # Triton compiles what starts its kernels with a C compiler.
    if not any(map(shutil.which, (os.environ.get("CC", ""), "gcc", "clang"))):
        return "no C compiler; install one, e.g. the package gcc"
    return "" if _triton.has_triton() else "no Triton for this GPU; pip install triton"


def compiled(function: F, device: str) -> F:
    """The function, compiled for a type of device."""
    result: F = _compiled(function, device)
    return result


@cache
def _compiled(function: Any, device: str) -> Any:
    settings: dict[str, Any] = {"dynamic": False, "fullgraph": True}
    if device == "cpu":
        # Without it Python calls every kernel, which takes 3 % of the time.
        settings["options"] = {"cpp_wrapper": True}
    else:
        # Independent kernels become one: a small fleet's time is the number of its kernels.
        settings["options"] = {"combo_kernels": True}
    import torch._dynamo

    # One version per shape of fleet and number of tasks; the default of 8 would be too few.
    torch._dynamo.config.cache_size_limit = 256
    return torch.compile(function, **settings)


@contextmanager
def around_compilations(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Inside the block `begin` is called before and `end` after everything that is compiled."""
    from torch._dynamo.callback import callback_handler as handler

    def first(*_: object) -> None:
        begin()

    def last(*_: object) -> None:
        end()

    handler.register_start_callback(first)
    handler.register_end_callback(last)
    try:
        yield
    finally:
        handler.remove_start_callback(first)
        handler.remove_end_callback(last)

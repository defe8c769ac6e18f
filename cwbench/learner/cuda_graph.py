"""One update as a CUDA graph: a few hundred kernels started by one call."""

import contextlib
import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch

from cwbench.learner.rng import Streams

POOL = 32  # streams of one priority that torch makes for a device
WARM_UP = 3  # ordinary updates before capture, in which libraries allocate what they need


@cache
def cuda_stream(device: torch.device, number: int) -> AbstractContextManager[Any]:
    """A CUDA stream, to be entered; work in different streams of a device runs concurrently.

    One trainer leaves gaps between its kernels, which another fills. There is one stream for each
    number, because libraries and the allocator keep memory for every stream.
    """
    if device.type != "cuda":
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]


_sides: dict[tuple[torch.device, int], torch.cuda.Stream] = {}  # by the stream that they are beside


def _side_of(main: torch.cuda.Stream, device: torch.device) -> torch.cuda.Stream | None:
    """A stream that nothing else uses: work of two groups in one would share cuBLAS's workspace.

    torch has a pool of streams for each priority and begins it again when all are taken. Only sides
    have a high one.
    """
    key = device, main.cuda_stream
    if key not in _sides and len(_sides) < POOL:
        _sides[key] = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
    return _sides.get(key)


def side_branch(device: torch.device) -> AbstractContextManager[None]:
    """A block whose work needs nothing that the current stream is given after this call.

    It has a stream of its own, for which the current one waits at the block's end: small kernels
    leave most of a GPU idle. What the block reads must not be freed or changed until then.
    """
    main = torch.cuda.current_stream(device)
    side, begun = _side_of(main, device), main.record_event()
    if side is None:
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def branch() -> Iterator[None]:
        side.wait_event(begun)
        try:
            with torch.cuda.stream(side):
                yield
        except BaseException:
            with contextlib.suppress(RuntimeError):  # of a capture that has failed
                main.wait_event(side.record_event())
            raise
        main.wait_event(side.record_event())

    return branch()


class CapturedUpdate:
    """Runs `update` as usual a few times, then captures it and replays it.

    The graph holds the addresses of weights, replay, sizes and random blocks, so these may change
    in place only. Whatever replaces one of them must start a new capture.
    """

    def __init__(self, update: Callable[[], None], streams: Streams) -> None:
        self.update, self.streams = update, streams
        self.seen = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.failed = False

    def replay(self, most: int) -> int:
        """Make up to `most` updates, as far as the random block reaches; 0 asks for a plain one."""
        if self.graph is None:
            self.seen += 1
            if self.seen <= WARM_UP or self.failed:
                return 0
            self._capture()
            if self.graph is None:
                return 0
        self.streams.fill()
        count = min(most, self.streams.left)
        for _ in range(count):
            self.graph.replay()
        return count

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        self.streams.fill()
        torch.cuda.synchronize()
        # In the trainer's own stream: cuBLAS has one workspace per stream, so graphs captured in
        # one stream must not be replayed in two at once. The default stream cannot be captured.
        here = torch.cuda.current_stream()
        pool = torch.cuda.graph_pool_handle()
        try:
            with (
                _no_garbage(),
                torch.cuda.graph(graph, pool, stream=here if here.stream_id else None),
            ):
                self.update()
                self.streams.advance()
        except RuntimeError as error:
            self.failed = True
            _end_failed_capture(here, pool)
            cause = error.__context__ or error  # ending a capture that has failed fails, too
            if isinstance(cause, torch.OutOfMemoryError) or not isinstance(cause, RuntimeError):
                raise cause from None
            warnings.warn(f"updates run uncaptured, and slowly: {cause}", stacklevel=2)
            return
        self.graph = graph


def _end_failed_capture(here: torch.cuda.Stream, pool: tuple[int, int]) -> None:
    """What torch leaves undone when a capture cannot be ended.

    Without it the capture's memory stays taken, no cached memory is given back any more, and
    torch's own random numbers on this device fail for good.
    """
    torch.cuda.set_stream(here)
    device = here.device_index
    with contextlib.suppress(RuntimeError):  # it had not begun, or has ended with the graph
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)
    generator = torch.cuda.default_generators[device]
    generator.graphsafe_set_state(generator.clone_state())


def collect_garbage(device: torch.device) -> None:
    """Give back the memory of trainers that nobody uses any more.

    A trainer and its method refer to each other, so only the garbage collector frees them; and
    torch caches freed device memory, in pools that captured updates do not share.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Garbage collection is off inside: destroying another graph would invalidate the capture."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

"""The same code on an accelerator: skipped where there is none."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from cwbench import methods
from cwbench.fleet.weight_sync import WeightPublisher
from cwbench.learner import host_memory
from cwbench.learner.cuda_graph import WARM_UP, collect_garbage, cuda_stream, side_branch
from cwbench.learner.method import Method
from cwbench.learner.replay import Replay
from cwbench.learner.rng import Streams
from cwbench.learner.runaxis import global_norm
from cwbench.learner.trainer import Trainer
from cwbench.rollout.shared_memory import SharedArray
from cwbench.spec.config import MethodConfig, NetworkConfig, SACConfig, ScheduleConfig
from cwbench.spec.transition import Dims

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]
CUDA = torch.device("cuda")


def make(
    seeds: list[int], device: torch.device, *, compiled: bool = False, actor_every: int = 1
) -> Trainer:
    trainer = Trainer(
        seeds,
        0,
        dims=Dims(12, 4),
        sac=SACConfig(batch_size=64, clip_norm=0.5, actor_every=actor_every),
        network=NetworkConfig(width=64),
        schedule=ScheduleConfig(),
        device=device,
        compiled=compiled,
    )
    replay = Replay(len(seeds), 300, Dims(12, 4), trainer.streams, live=[0])
    rows = [torch.randn(300, 29, generator=torch.Generator().manual_seed(s)) for s in seeds]
    replay.add(0, torch.stack(rows))
    trainer.begin(methods.METHODS["finetuning"].method(MethodConfig(), trainer), replay)
    return trainer


class Drawn(Method[MethodConfig]):
    """Draws after every 25 updates: twice within each block of random numbers, once at its end."""

    interval = 25

    def on_task_start(self, position: int) -> None:
        self.seen: list[torch.Tensor] = []

    def at_interval(self) -> None:
        self.seen.append(self.trainer.streams.uniform("mine", (2,)).cpu().clone())
        self.seen.append(self.trainer.replay.sample(4, "rows").rows.cpu())


def test_draws_between_captured_updates_are_those_of_the_cpu() -> None:
    seen = []
    for device in (torch.device("cpu"), CUDA):
        trainer = make([0, 1], device)
        method = Drawn(MethodConfig(), trainer)
        method.on_task_start(0)
        trainer.method = method
        trainer.train(200)
        seen.append(method.seen)
    assert len(seen[0]) == 16
    assert all(torch.equal(here, there) for here, there in zip(*seen, strict=True))


class DrawnInTensors(Method[MethodConfig]):
    """Sums what it draws after every 10 updates."""

    interval = 10
    captures_interval = True

    def on_task_start(self, position: int) -> None:
        self.total = torch.zeros(self.trainer.runs, 29, device=self.trainer.device)
        self.calls = 0  # of Python

    def at_interval(self) -> None:
        self.calls += 1
        rows = self.trainer.replay.sample(4, "rows").rows
        self.total += self.trainer.streams.large_uniform("large", 29) + rows.sum(1, keepdim=True)


def test_what_is_captured_between_updates_draws_as_on_the_cpu() -> None:
    seen = {}
    for device in (torch.device("cpu"), CUDA):
        trainer = make([0, 1], device)
        trainer.method = method = DrawnInTensors(MethodConfig(), trainer)
        method.on_task_start(0)
        for updates in (95, 105):
            trainer.train(updates)
        seen[device.type] = method
    assert_close(seen["cuda"].total.cpu(), seen["cpu"].total)
    assert seen["cpu"].calls == 20
    assert seen["cuda"].calls == WARM_UP + 1, "the rest is replayed"


def test_draws_are_the_same_on_both_devices() -> None:
    here, there = Streams([1, 2], 3, torch.device("cpu")), Streams([1, 2], 3, CUDA)
    for update in (0, 5, 77):
        here.seek(update)
        there.seek(update)
        assert torch.equal(here.uniform("u", (9,)), there.uniform("u", (9,)).cpu())
        assert_close(here.normal("n", (9,)), there.normal("n", (9,)).cpu(), atol=1e-5, rtol=1e-5)
        size = torch.tensor(1000)
        assert torch.equal(here.index("i", 9, size), there.index("i", 9, size.cuda()).cpu())


def test_norms_are_the_same_on_both_devices() -> None:
    """Those of whole blocks and of others."""
    here = [torch.randn(shape) for shape in ((3, 2, 2, 64, 64), (3, 64, 64), (3, 7, 5), (3, 9))]
    there = [x.cuda() for x in here]
    together = torch.cat([x.flatten(1) for x in here], 1).norm(dim=1)
    assert_close(global_norm(there).cpu(), together)
    for x, y in zip(here, there, strict=True):
        assert_close(global_norm([y]).cpu(), global_norm([x]))


@pytest.mark.parametrize("actor_every", [1, 2])
def test_captured_updates_equal_plain_ones(actor_every: int) -> None:
    """With a delayed actor two graphs take turns; each has random numbers that the other lacks."""
    captured, plain = (make([0, 1], CUDA, actor_every=actor_every) for _ in range(2))
    plain.captured = plain.captured_critic = None
    for trainer in (captured, plain):
        trainer.train(130)  # across three blocks of random numbers
    assert captured.captured is not None and captured.captured.graph is not None
    assert captured.captured_critic is not None
    assert (captured.captured_critic.graph is not None) == (actor_every > 1)
    for name, x in plain.state().items():
        assert_close(captured.state()[name], x, atol=1e-5, rtol=1e-4)
    assert captured.updates == plain.updates == 130
    assert captured.statistics.take()["q"] == pytest.approx(plain.statistics.take()["q"], rel=1e-3)


def test_garbage_is_gone_before_an_update_is_captured() -> None:
    """A graph destroyed while another is captured would spoil that one."""
    old, new = make([0], CUDA), make([1], CUDA)
    old.train(10)
    assert old.captured is not None and old.captured.graph is not None and new.captured is not None
    left, update, seen = weakref.ref(old), new.captured.update, []

    def watched() -> None:
        seen.append((left() is None, gc.isenabled()))
        update()

    new.captured.update = watched
    del old  # but it and its method refer to each other
    assert left() is not None
    new.train(10)
    assert seen == [(True, False)] and new.captured.graph is not None
    assert gc.isenabled()


@pytest.mark.filterwarnings("ignore")  # torch's compiler has several of its own
@pytest.mark.parametrize(("actor_every", "compiled"), [(1, False), (2, False), (2, True)])
def test_twenty_updates_equal_the_cpu(actor_every: int, compiled: bool) -> None:
    here = make([0, 1], torch.device("cpu"), actor_every=actor_every)
    there = make([0, 1], CUDA, compiled=compiled, actor_every=actor_every)
    for trainer in (here, there):
        trainer.train(20)
    for name, x in here.state().items():
        assert_close(there.state()[name].cpu(), x, atol=1e-3, rtol=1e-3)


def test_a_member_of_a_large_fleet_equals_the_run_alone() -> None:
    fleet, alone = make(list(range(100)), CUDA), make([37], CUDA)
    for trainer in (fleet, alone):
        trainer.train(200)
    for name, x in alone.state().items():
        assert_close(fleet.state()[name][37:38], x, atol=2e-3, rtol=2e-3)


def test_replay_in_host_memory_gives_the_same_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    own = make([0, 1], CUDA)
    monkeypatch.setattr(host_memory, "ROOM", 0.0)
    mapped = make([0, 1], CUDA)
    assert mapped.replay.rows.device.type == "cuda"
    before = torch.cuda.memory_allocated()
    extra = host_memory.zeros(1 << 20, device=CUDA)
    assert torch.cuda.memory_allocated() == before, "it lies on the device"
    assert not extra.any()
    for trainer in (own, mapped):
        trainer.train(70)
    assert mapped.captured is not None and mapped.captured.graph is not None
    for name, x in own.state().items():
        assert torch.equal(mapped.state()[name], x), name


def test_memory_that_cannot_be_locked_leaves_no_error_for_the_next_kernel() -> None:
    x = torch.zeros(1 << 16)
    unlock = host_memory.lock(x)
    if unlock is None:
        pytest.skip("this machine does not lock pages")
    assert host_memory.lock(x) is None  # it is locked already
    assert torch.ones(3, device=CUDA).sum() == 3
    unlock()


def test_fleets_side_by_side_learn_as_they_do_alone() -> None:
    fleets = [list(range(30)), list(range(100, 130))]
    alone = [make(seeds, CUDA) for seeds in fleets]
    for trainer in alone:
        trainer.train(120)
    concurrent = []
    for number, seeds in enumerate(fleets):
        stream = cuda_stream(CUDA, number)
        with stream:
            concurrent.append((stream, make(seeds, CUDA)))
    for _ in range(12):
        for stream, trainer in concurrent:
            with stream:
                trainer.train(10)
    torch.cuda.synchronize()
    for one, (_, other) in zip(alone, concurrent, strict=True):
        for name, x in one.state().items():
            assert torch.equal(other.state()[name], x), name


def test_no_side_is_the_stream_of_a_group() -> None:
    """Not even where there are more groups than torch has streams; then some have no side."""
    mains = set[torch.cuda.Stream]()
    beside: dict[torch.cuda.Stream, torch.cuda.Stream] = {}
    for number in range(40):
        with cuda_stream(CUDA, number):
            main = torch.cuda.current_stream()
            with side_branch(CUDA):
                side = torch.cuda.current_stream()
        mains.add(main)
        if side != main:
            assert beside.setdefault(side, main) == main
    assert len(beside) > 10 and not mains & beside.keys()


def test_weights_are_there_when_their_version_is() -> None:
    """As a worker sees it: no event, no synchronisation, only memory."""
    weights, version = SharedArray((50, 200_000)), SharedArray((1,), np.int64)
    publisher = WeightPublisher(weights.array, version.array, CUDA)
    for number in range(1, 201):
        publisher.start(torch.full((50, 200_000), float(number), device=CUDA))
        while version.array[0] < publisher.version:
            pass
        assert (weights.array == number).all()
    publisher.close()
    for shared in (weights, version):
        shared.close()


def test_publishing_does_not_wait_for_the_device() -> None:
    weights, version = SharedArray((2, 300)), SharedArray((1,), np.int64)
    publisher = WeightPublisher(weights.array, version.array, CUDA)
    if None in publisher._unlocks:
        pytest.skip("this machine does not lock pages")
    torch.cuda._sleep(2 * 10**9)  # cycles: about a second
    publisher.start(torch.ones(2, 300, device=CUDA))
    assert version.array[0] == 0 and publisher.version == 1
    publisher.wait()
    assert version.array[0] == 1 and (weights.array == 1).all()
    publisher.close()
    for shared in (weights, version):
        shared.close()


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")  # it may overlook some
def test_storing_transitions_does_not_wait_for_the_device() -> None:
    """With a lag, updates are under way then."""
    trainer = make([0, 1], CUDA)
    rows = torch.ones(2, 50, 29).pin_memory()
    trainer.replay.add(0, rows)
    try:
        torch.cuda.set_sync_debug_mode("error")
        trainer.replay.add(0, rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert trainer.replay.added[0] == 400 and (trainer.replay.stored(0)[:, 50:100] == 1).all()


def test_an_update_that_cannot_be_captured_runs_all_the_same() -> None:
    """As a method that reads a number from the device; the warning says what is not permitted.

    What other code does afterwards is as before: memory, torch's random numbers, the stream.
    """
    trainer = make([0], CUDA)
    assert trainer.captured is not None

    def update() -> None:
        print(torch.zeros(64 << 20, device=CUDA).sum().item())  # 256 MiB

    trainer.captured.update = update
    collect_garbage(CUDA)
    reserved, stream = torch.cuda.memory_reserved(), torch.cuda.current_stream()
    with pytest.warns(UserWarning, match="uncaptured, and slowly: .*not permitted"):
        trainer.train(5)
    assert trainer.captured.failed and trainer.updates == 5
    assert all(x.isfinite().all() for x in trainer.params.values())
    assert torch.randn(2, device=CUDA).isfinite().all()
    assert torch.cuda.current_stream() == stream
    collect_garbage(CUDA)
    assert torch.cuda.memory_reserved() < reserved + (128 << 20)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")  # nothing came before the error
def test_too_little_memory_for_a_capture_is_an_error() -> None:
    """Half as many runs may have enough."""
    trainer = make([0], CUDA)
    assert trainer.captured is not None
    trainer.captured.update = lambda: print(torch.empty(1 << 50, device=CUDA))
    with pytest.raises(torch.OutOfMemoryError):
        trainer.train(5)
    assert torch.randn(2, device=CUDA).isfinite().all()

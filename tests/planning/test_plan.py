"""Plans: parents first, as few fleets as fit, groups of large ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cwbench import sequences
from cwbench.planning import plan as planning
from cwbench.planning.plan import (
    Run,
    TooLarge,
    _split,
    groups_on_cuda,
    make_plan,
    shape_key,
    with_experts,
)
from cwbench.spec.config import (
    MetaWorldConfig,
    MethodConfig,
    NetworkConfig,
    SACConfig,
    ScheduleConfig,
)
from cwbench.spec.errors import UserError
from cwbench.spec.segment import Segment, Setup, segments_of_run
from cwbench.store.results import Store

SETUP = Setup(
    "finetuning", MethodConfig(), SACConfig(), NetworkConfig(), MetaWorldConfig(), ScheduleConfig()
)
TASKS = (("push",), ("hammer",), ("push", "hammer"))


def test_plan_puts_parents_first_and_splits_evenly(tmp_path: object) -> None:
    runs = [
        Run(
            name,
            tasks,
            "x",
            "p",
            tuple(segments_of_run(SETUP, seed, tasks, needs_length=False, joint=False)),
        )
        for name in ("cw3-1", "cw3-2", "pair-0-8")
        for tasks in [sequences.get(name).tasks]
        for seed in range(5)
    ]
    plan = make_plan(runs, Store(tmp_path), 4)  # type: ignore[arg-type]
    assert [len(fleet) for fleet in plan.fleets] == [4, 3, 3, 4, 3, 3, 4, 3, 3]
    seen: set[str] = set()
    for fleet in plan.fleets:
        assert all(s.parent is None or s.parent.id in seen for s in fleet)
        seen |= {segment.id for segment in fleet}


def test_fleets_are_as_few_as_fit_and_fill_all_devices() -> None:
    group = [Segment(SETUP, seed, ("push",)) for seed in range(10)]
    sizes = lambda **how: [len(f) for f in _split(group, **how)]  # noqa: E731
    everything = lambda fleet: True  # noqa: E731
    assert sizes(size=8, fits=everything, devices=1) == [5, 5]
    assert sizes(size=8, fits=lambda fleet: len(fleet) <= 3, devices=1) == [3, 3, 2, 2]
    assert sizes(size=8, fits=everything, devices=4) == [3, 3, 2, 2]
    assert sizes(size=8, fits=everything, devices=64) == [1] * 10
    with pytest.raises(TooLarge):
        sizes(size=8, fits=lambda fleet: False, devices=1)


@pytest.mark.parametrize(
    ("runs", "sizes"), [(1, [1]), (15, [15]), (16, [8, 8]), (74, [37, 37]), (100, [34, 33, 33])]
)
def test_only_large_fleets_are_split_into_groups(runs: int, sizes: list[int]) -> None:
    fleet = [Segment(SETUP, seed, ("push",)) for seed in range(runs)]
    groups = groups_on_cuda(fleet)
    assert [len(group) for group in groups] == sizes
    assert [segment for group in groups for segment in group] == fleet


def run_of(setup: Setup, seed: int, tasks: tuple[str, ...], *, needs_length: bool = False) -> Run:
    segments = segments_of_run(setup, seed, tasks, needs_length=needs_length, joint=False)
    return Run("-".join(tasks), tasks, "x", "p", tuple(segments))


def test_only_what_differs_in_seed_and_tasks_trains_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fleet has one trainer, with the options, the length and the step of its first run."""
    plain = [run_of(SETUP, 0, ("push",)), run_of(SETUP, 1, ("hammer",))]
    other = run_of(replace(SETUP, sac=SACConfig(batch_size=32)), 0, ("push",))
    longer = replace(SETUP, schedule=ScheduleConfig(steps_per_task=2_000_000))
    sized = [run_of(SETUP, 2, ("push", "hammer")[:n], needs_length=True) for n in (1, 2)]
    resumed = run_of(SETUP, 3, ("push",))
    steps = {resumed.segments[0].folder: 500}
    monkeypatch.setattr(planning, "saved_step", lambda folder: steps.get(folder.path.name, 0))
    runs = [*plain, other, run_of(longer, 0, ("push",)), *sized, resumed]
    fleets = make_plan(runs, Store(tmp_path), 100).fleets
    assert sorted(map(len, fleets)) == [1, 1, 1, 1, 1, 1, 2]
    assert [list(fleet) for fleet in fleets if len(fleet) == 2] == [
        [segment for run in plain for segment in run.segments]
    ]


def test_a_record_tells_setups_apart_and_nothing_else() -> None:
    """Runs of one setup are one row of a table."""
    setups = [SETUP, replace(SETUP, schedule=ScheduleConfig(eval_every=1000))]
    setups += [replace(SETUP, sac=SACConfig(lr=0.1)), replace(SETUP, source="0123456789ab")]
    found = [
        [run_of(setup, seed, tasks).record()["setup"] for seed, tasks in enumerate(TASKS)]
        for setup in setups
    ]
    assert all(len(set(names)) == 1 for names in found)
    assert len({names[0] for names in found}) == len(setups)


def test_an_expert_comes_before_what_starts_from_it(tmp_path: Path) -> None:
    tasks = ("push", "hammer")
    segments = segments_of_run(SETUP, 0, tasks, needs_length=False, joint=False, experts="sac")
    students = Run("pair", tasks, "x", "p", tuple(segments))
    plan = make_plan(with_experts([students]), Store(tmp_path), 100)
    seen: set[str] = set()
    for fleet in plan.fleets:
        assert all(parent.id in seen for segment in fleet for parent in segment.parents)
        seen |= {segment.id for segment in fleet}
    assert len(seen) == 4


@pytest.mark.parametrize("change", [{"seed": 5}, {"tasks": ("hammer",)}])
def test_shapes_differ_in_what_kernels_depend_on(change: dict[str, Any]) -> None:
    group = [Segment(SETUP, seed, ("push",)) for seed in range(2)]
    assert shape_key([replace(one, **change) for one in group]) == shape_key(group)
    longer = [replace(one, tasks=("push", "hammer")) for one in group]
    assert len({shape_key(one) for one in (group, group[:1], longer)}) == 3


def test_nothing_is_planned_to_start_from_weights_that_are_gone(tmp_path: Path) -> None:
    """As after `cwbench merge` without `--weights`; a run that is done needs none."""
    store, run = Store(tmp_path), run_of(SETUP, 0, ("push", "hammer"))
    first = store.folder(run.segments[0])
    first.create(run.segments[0], {})
    first.set_status("done")
    with pytest.raises(UserError, match="weights"):
        make_plan([run], store, 100)
    assert make_plan([run_of(SETUP, 0, ("push",))], store, 100).missing == 0
    first.end.touch()
    assert make_plan([run], store, 100).missing == 1

"""PackNet: shares of the layers, known thresholds, and functions that never change."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from cwbench.learner.trainer import Trainer
from cwbench.methods.packnet import PackNet, PackNetConfig, prune
from cwbench.spec.config import SACConfig, ScheduleConfig
from cwbench.store import checkpoint
from cwbench.store.results import RETRAINING, RETRAINING_COLUMNS, SegmentFolder

Make = Callable[..., Trainer]
RETRAIN = 5


@pytest.fixture
def three_tasks(make_trainer: Make) -> Callable[[], list[Any]]:
    """Trainers at the ends of three tasks, pruned and retrained."""

    def make() -> list[Any]:
        trainers: list[Any] = []
        for position in range(3):
            sac = SACConfig(batch_size=16, clip_norm=2e-5)
            trainer = make_trainer([0, 1], position=position, sac=sac)
            trainer.length = 3
            trainer.method = PackNet(PackNetConfig(retrain_updates=RETRAIN), trainer)
            if trainers:
                trainer.start(trainers[-1].state())
                trainer.method.load_state(
                    {k: x.clone() for k, x in trainers[-1].method.state().items()}
                )
            trainer.method.on_task_start(position)
            trainer.train(10)
            trainer.method.on_task_end(position)
            trainers.append(trainer)
        return trainers

    return make


def acting(trainer: Any, task: int) -> dict[str, Tensor]:
    """All weights that decide a task's actions: the shared ones it sees, and its head."""
    network = trainer.policy.network
    return {
        name: x.select(network.task_axis, task) if network.per_task(name) else x
        for name, x in trainer.method.policy_weights(task).items()
    }


def test_thresholds_on_known_layers() -> None:
    weight = torch.tensor(
        [[[1.0, -7.0, 3.0], [-4.0, 5.0, 6.0]], [[0.1, 0.6, -0.5], [0.4, 0.3, -0.2]]]
    )
    owner = torch.zeros(2, 2, 3, dtype=torch.int16)
    # Two tasks to come: 2/3 of six weights is index 4 of the sorted sizes, and that one goes too.
    prune(weight, owner, 0, left=2)
    assert weight.tolist()[0] == [[0, -7, 0], [0, 0, 0]]
    assert owner.tolist() == [[[1, 0, 1], [1, 1, 1]], [[1, 0, 1], [1, 1, 1]]]
    # The next task trains its five; one more to come: index 2 of five.
    weight[0] = torch.tensor([[10.0, -7.0, 30.0], [-40.0, 50.0, 60.0]])
    prune(weight[:1], owner[:1], 1, left=1)
    assert weight.tolist()[0] == [[0, -7, 0], [0, 50, 60]]
    assert owner.tolist()[0] == [[2, 0, 2], [2, 1, 1]]


def test_runs_that_own_different_numbers_are_pruned_apart() -> None:
    weight = torch.tensor([[[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0, 3.0, 4.0]], [[1.0, 2.0, 3.0, 4.0]]])
    owner = torch.tensor([[[1, 1, 1, 1]], [[0, 1, 0, 1]], [[0, 0, 0, 0]]], dtype=torch.int16)
    prune(weight, owner, 1, left=1)
    assert owner.tolist() == [[[2, 2, 2, 1]], [[0, 2, 0, 2]], [[0, 0, 0, 0]]]
    assert weight.tolist() == [[[0, 0, 0, 4]], [[1, 0, 3, 0]], [[1, 2, 3, 4]]]


def test_each_task_ends_with_its_share_of_each_layer(
    three_tasks: Callable[[], list[Any]],
) -> None:
    packnet = three_tasks()[-1].method
    assert sorted(packnet.owner) == [f"actor.{layer}.weight" for layer in range(4)]
    for owner in packnet.owner.values():
        for run in range(2):
            counts = torch.bincount(owner[run].flatten().int(), minlength=3)
            # The weight at a threshold goes too: one less for the first, one more for the last.
            assert len(counts) == 3
            assert (counts - owner[run].numel() / 3).abs().max() <= 1


def test_old_functions_never_change(three_tasks: Callable[[], list[Any]]) -> None:
    trainers = three_tasks()
    for old in (0, 1):
        then = acting(trainers[old], old)
        for later in trainers[old + 1 :]:
            now = acting(later, old)
            assert not [name for name in then if not torch.equal(then[name], now[name])]
    # What acts now is not what acted then: the masks are needed.
    full, masked = trainers[2].actor_params, trainers[2].method.policy_weights(0)
    assert not torch.equal(full["actor.1.weight"], masked["actor.1.weight"])


def test_freed_weights_start_at_zero_and_are_then_trained(
    three_tasks: Callable[[], list[Any]],
) -> None:
    first, second, _ = three_tasks()
    for name, owner in first.method.owner.items():
        assert (owner == 1).any()
        assert not first.params[name][owner == 1].any()
        kept = second.method.owner[name] == 1
        assert second.params[name][kept].abs().min() > 0


def test_biases_and_layer_norm_stay_from_the_first_pruning_on(make_trainer: Make) -> None:
    trainer = make_trainer([0])
    trainer.length, trainer.schedule = 2, ScheduleConfig(steps_per_task=70)
    trainer.method = packnet = PackNet(PackNetConfig(), trainer)
    packnet.on_task_start(0)

    def others() -> dict[str, Tensor]:
        names = [n for n in trainer.trunk_names("actor") if not n.endswith(".weight")]
        return {name: trainer.params[name].detach().clone() for name in names}

    start = others()
    trainer.train(3)
    trained = others()
    assert not any(torch.equal(start[name], trained[name]) for name in start)
    kernel = trainer.params["actor.1.weight"].detach().clone()
    critic = trainer.params["critic.1.weight"].detach().clone()
    packnet.on_task_end(0)
    assert trainer.retrain_updates == 7  # a tenth of the steps
    retrained = others()
    assert all(torch.equal(trained[name], retrained[name]) for name in trained)
    kept = packnet.owner["actor.1.weight"] == 0
    assert not torch.equal(trainer.params["actor.1.weight"][kept], kernel[kept])
    assert not torch.equal(trainer.params["critic.1.weight"], critic)


def test_the_last_task_keeps_everything(three_tasks: Callable[[], list[Any]]) -> None:
    trainers = three_tasks()
    assert [trainer.retrain_updates for trainer in trainers] == [RETRAIN, RETRAIN, 0]
    full, seen = trainers[2].actor_params, trainers[2].method.policy_weights(2)
    assert all(torch.equal(full[name], seen[name]) for name in full)


def test_success_during_retraining_is_logged_and_changes_nothing(
    toy_run: Any, tmp_path: Path
) -> None:
    """Before the first of twelve updates and after every five; weights are those without a log."""
    ends = {}
    for every in (0, 5):
        options = {"retrain_updates": 12, "retrain_log_every": every}
        store, plan, _ = toy_run(
            tmp_path / str(every), "packnet", tasks=("reach-0-1", "reach-2-1"), options=options
        )
        first = store.folder(plan.segments[0])
        ends[every] = checkpoint.load(first.end)[0]
        log = first.path / RETRAINING
        assert log.exists() == bool(every)
        assert first.status()["resources"]["retrain_updates"] == 12
    rows = pd.read_csv(log)
    assert rows["updates"].tolist() == [0, 5, 10]
    assert tuple(rows.columns) == RETRAINING_COLUMNS
    assert all(torch.equal(x, ends[5][name]) for name, x in ends[0].items())


def learned(folder: SegmentFolder) -> dict[str, Tensor]:
    """Networks, targets and temperature at a task's end."""
    end = checkpoint.load(folder.end)[0]
    return {name: x for name, x in end.items() if name.startswith("trainer/")}


def measured(folder: SegmentFolder) -> list[dict[Hashable, Any]]:
    """Evaluations of the first task before its end, and its training, but for the clock."""
    evals, train = (pd.read_csv(folder.path / f"{name}.csv") for name in ("evals", "train"))
    before = (evals["eval_position"] == 0) & (evals["step"] < evals["step"].max())
    return [evals[before].to_dict("list"), train.drop(columns="seconds").to_dict("list")]


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(x, other[k]) for k, x in one.items())


def test_only_clipping_tells_the_first_task_from_plain_sac(toy_run: Any, tmp_path: Path) -> None:
    """Bit for bit, as masks are ones until the first pruning; an only task is never pruned."""

    def first(name: str, *tasks: str, **sac: float) -> SegmentFolder:
        options = {"retrain_updates": 0} if name == "packnet" else {}
        root = tmp_path / "-".join([name, *tasks, *map(str, sac.values())])
        store, plan, _ = toy_run(root, name, tasks=tasks, sac=sac, options=options)
        folder: SegmentFolder = store.folder(plan.segments[0])
        return folder

    task, later = "reach-0-1", ("reach-2-1000", "reach-4-1")
    free, clipped = first("finetuning", task), first("finetuning", task, clip_norm=2e-5)
    pairs = [(free, {"clip_norm": 0.0}), (clipped, {})]
    for plain, sac in pairs:
        alone = first("packnet", task, **sac)
        assert same(learned(plain), learned(alone))
        assert (plain.path / "evals.csv").read_text() == (alone.path / "evals.csv").read_text()
        assert measured(plain) == measured(alone) == measured(first("packnet", task, *later, **sac))
    assert len(measured(free)[0]["step"]) == 2
    networks = [learned(folder) for folder in (free, clipped)]
    for name in ("actor.1.weight", "critic.1.weight", "log_alpha"):
        assert not torch.equal(*(found[f"trainer/{name}"] for found in networks))

"""Options of `cwbench run` that are more than one field."""

from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from cwbench.cli import cli
from cwbench.experiment.build import (
    load_method,
    make_label,
    make_setup,
    parse_unshared,
    with_unshared,
)
from cwbench.learner.heads import Tasks
from cwbench.learner.trainer import Trainer
from cwbench.spec.config import NetworkConfig, SACConfig
from cwbench.spec.errors import UserError


def setup_of(name: str, given: dict[str, Any], unshared: str | None = None) -> Any:
    method, entry = load_method(name)
    names = parse_unshared(unshared)
    return make_setup(method, entry, "paper", with_unshared(names, entry, "paper", given))


@pytest.mark.parametrize(
    ("unshared", "actor", "critic"),
    [(None, 0, 0), ("actor", 4, 0), ("critic", 0, 4), ("critic,actor", 4, 4)],
)
def test_unshared_puts_all_layers_into_heads(unshared: str | None, actor: int, critic: int) -> None:
    network = setup_of("pm", {}, unshared).network
    assert (network.actor_head_layers, network.critic_head_layers) == (actor, critic)


def test_unshared_follows_the_number_of_layers_and_beats_presets() -> None:
    network = setup_of("recall", {"layers": 5}, "critic").network
    assert (network.actor_head_layers, network.critic_head_layers) == (0, 5)


def test_unshared_is_said_in_the_label() -> None:
    _, entry = load_method("recall")
    given = {"lambda_": 0.1, "beta": 3e-4, "lr": 0.01, "width": 256}
    label = make_label("recall", entry, "paper", given, ["critic", "actor"])
    assert label == "recall (lambda=0.1, unshared actor and critic)"
    swept = make_label("recall", entry, "paper", given, swept=["lr", "width"])
    assert swept == "recall (lambda=0.1, lr=0.01)"  # 256 is what it would be anyway
    assert make_label("pm", load_method("pm")[1], "paper", {}) == "perfect-memory"


def test_unshared_rejects_what_it_does_not_know() -> None:
    with pytest.raises(UserError, match="'policy' is neither actor nor critic"):
        parse_unshared("critic,policy")
    with pytest.raises(UserError, match="means --critic-head-layers 4; give only one"):
        setup_of("pm", {"critic_head_layers": 3}, "critic")


def test_keyword_option_has_a_plain_flag() -> None:
    text = CliRunner().invoke(cli, ["run", "--method", "recall-pairs", "--help"]).output
    assert "--lambda " in text and "--lambda_" not in text and "--lambda- " not in text


def test_dry_run_accepts_both(tmp_path: Path) -> None:
    command = "run --method recall --seq pair-5-0 --protocol smoke --dry-run --lambda 0.5"
    arguments = [*command.split(), "--unshared", "actor", "--results", str(tmp_path)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output


def test_unshared_networks_do_not_touch_each_other(make_trainer: Any) -> None:
    network = NetworkConfig(width=16, actor_head_layers=4, critic_head_layers=4)
    trainer: Trainer = make_trainer([0], position=1, network=network)
    assert trainer.trunk_names("actor") == trainer.trunk_names("critic") == []
    before = {name: x.clone() for name, x in trainer.state().items()}
    trainer.train(3)
    for name, p in trainer.params.items():
        old, new = (x.movedim(trainer.task_axis(name), 1) for x in (before[name], p))
        assert torch.equal(old[:, 0], new[:, 0]), name
        assert not torch.equal(old[:, 1], new[:, 1]), name
    x = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0))
    values = [
        trainer.critic(trainer.params, x, Tasks.single(task, 1, 5, x.device)) for task in (0, 1)
    ]
    assert not torch.allclose(
        values[0], values[1]
    )  # the second task's network has weights of its own


def test_clip_of_zero_is_no_limit(make_trainer: Any) -> None:
    ends = []
    for clip in (None, 0.0, 1e-6):
        trainer: Trainer = make_trainer([0], sac=SACConfig(batch_size=16, clip_norm=clip))
        trainer.train(2)
        ends.append(trainer.params["actor.1.weight"].detach())
    assert torch.equal(ends[0], ends[1]) and not torch.equal(ends[0], ends[2])

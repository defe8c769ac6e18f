"""Setups from names and options."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from cwbench import envs, sequences
from cwbench.cli import cli
from cwbench.envs import pointmass
from cwbench.experiment.build import (
    load_method,
    make_label,
    make_setup,
    parse_seeds,
    parse_unshared,
    runs_of,
    with_unshared,
)
from cwbench.learner import Method, MethodConfig
from cwbench.learner.trainer import Trainer
from cwbench.methods import BASES, METHODS, Entry
from cwbench.spec.config import ENV_CONFIGS, PROTOCOLS, EnvConfig, NetworkConfig, SACConfig
from cwbench.spec.errors import UserError
from cwbench.spec.options import option
from cwbench.spec.protocol import Protocol
from cwbench.spec.segment import Setup


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


def test_a_protocol_beats_a_methods_preset_and_the_user_beats_both() -> None:
    name, entry = load_method("perfect-memory")
    sizes = [
        make_setup(name, entry, protocol, given).sac.batch_size
        for protocol, given in (("paper", {}), ("demo", {}), ("demo", {"batch_size": 32}))
    ]
    assert sizes == [512, PROTOCOLS["demo"]["batch_size"], 32] == [512, 64, 32]


def test_every_sequence_has_the_environments_of_its_suite() -> None:
    name, entry = load_method("ewc")
    wanted = [sequences.get("cw3-1"), sequences.get("point3")]
    runs = runs_of(name, name, entry, "demo", {}, wanted=wanted, seeds=[0, 1])
    found = [(run.sequence, run.segments[0].setup.env.suite) for run in runs]
    assert found == [("cw3-1", "metaworld")] * 2 + [("point3", "pointmass")] * 2


def test_a_range_of_seeds_has_both_its_ends() -> None:
    assert parse_seeds("7,0-2,5-5") == [7, 0, 1, 2, 5]


def test_unshared_is_said_in_the_label() -> None:
    _, entry = load_method("recall")
    given = {"lambda_": 0.1, "beta": 3e-4, "width": 256}
    label = make_label("recall", entry, "paper", given, ["critic", "actor"])
    assert label == "recall (lambda=0.1, unshared actor and critic)"
    assert make_label("pm", load_method("pm")[1], "paper", {}) == "perfect-memory"


def test_a_label_names_what_changes_sac_and_networks() -> None:
    """Not what protocol, variant or method give anyway, nor settings of the environment."""

    def label(method: str, protocol: str = "paper", **given: Any) -> str:
        return make_label(method, load_method(method)[1], protocol, given)

    assert label("recall", width=64, lr=0.01, steps_per_task=500) == "recall (lr=0.01, width=64)"
    assert label("recall", critic_head_layers=3, batch_size=128) == "recall"
    assert label("recall-pairs", critic_head_layers=0) == "recall-pairs"
    assert label("recall-pairs", critic_head_layers=3) == "recall-pairs (critic-head-layers=3)"
    assert label("recall", "componet", critic_head_layers=1) == "recall"  # as fitted to 2 layers
    own = "recall (critic-head-layers=2)"
    assert label("recall", "componet", critic_head_layers=2) == own
    assert label("recall", layers=2, critic_head_layers=1) == label("recall", layers=2)
    assert label("pm", batch_size=512) == "perfect-memory"
    assert label("pm", batch_size=128) == "perfect-memory (batch-size=128)"
    assert label("ewc", "demo", width=64) == "ewc"
    assert label("ewc", "demo", width=256) == "ewc (width=256)"
    assert label("ewc", hidden="256,256,256,256") == "ewc"
    assert label("ewc", hidden=(400, 300)) == "ewc (hidden=400,300)"
    assert label("ewc", hidden="64,64") == label("ewc", width=64, layers=2)


def test_equal_options_have_one_label_however_they_are_given() -> None:
    """The command line has checked them, Python and notebooks give what they have."""

    def label(**given: Any) -> str:
        return make_label("recall", load_method("recall")[1], "paper", given)

    assert label(lambda_=1) == label(lambda_=1.0) == "recall (lambda=1.0)"
    assert label(log_std_range="-20.0, 2") == "recall"
    assert label(log_std_range="-5.0, 2") == label(log_std_range=(-5, 2))
    assert label(hidden="400, 300") == label(hidden=(400, 300))
    assert (
        label(reset="heads,actor")
        == label(reset=["actor", "heads"])
        == "recall (reset=actor,heads)"
    )
    assert label(reset="optimizer") == label() == "recall"


def test_a_label_names_options_of_the_schedule_where_they_are_swept() -> None:
    _, entry = load_method("ewc")
    given = {"lag": 1, "start_steps": 500}
    assert make_label("ewc", entry, "paper", given, swept=["lag"]) == "ewc (lag=1)"


def test_unshared_rejects_what_it_does_not_know() -> None:
    with pytest.raises(UserError, match="'policy' is neither actor nor critic"):
        parse_unshared("critic,policy")
    with pytest.raises(UserError, match="means --critic-head-layers 4; give only one"):
        setup_of("pm", {"critic_head_layers": 3}, "critic")


def test_clip_of_zero_is_no_limit(make_trainer: Any) -> None:
    ends = []
    for clip in (None, 0.0, 1e-6):
        trainer: Trainer = make_trainer([0], sac=SACConfig(batch_size=16, clip_norm=clip))
        trainer.train(2)
        ends.append(trainer.params["actor.1.weight"].detach())
    assert torch.equal(ends[0], ends[1]) and not torch.equal(ends[0], ends[2])


@pytest.mark.parametrize(
    ("given", "units", "label"),
    [
        ({}, (32, 16), "finetuning"),
        ({"width": 64}, (64, 64), "finetuning (width=64, layers=2)"),
        ({"width": 32}, (32, 32), "finetuning (width=32, layers=2)"),
        ({"layers": 3}, (32, 32, 32), "finetuning (width=32, layers=3)"),
        ({"hidden": "8,4"}, (8, 4), "finetuning (hidden=8,4)"),
    ],
)
def test_sizes_of_layers_come_from_the_first_that_names_them(
    given: dict[str, Any], units: tuple[int, ...], label: str
) -> None:
    """`hidden` sets width and layers: one from a protocol must not beat the user's width."""
    name, entry = load_method("finetuning")
    protocol = Protocol("mine", {**PROTOCOLS["smoke"], "hidden": "32,16"})
    assert make_setup(name, entry, protocol, given).network.units == units
    assert make_label(name, entry, protocol, given) == label
    own = replace(entry, options={"hidden": "400,300"})  # smoke has a width and layers
    assert make_setup(name, own, "smoke", {}).network.units == (32, 32)
    assert make_setup(name, own, "compact", {}).network.units == (400, 300)


@pytest.mark.parametrize(("layers", "own"), [(5, 3), (4, 3), (3, 2), (2, 1), (1, 0)])
def test_deep_heads_of_a_method_leave_a_layer_shared(layers: int, own: int) -> None:
    assert setup_of("recall", {"layers": layers}).network.critic_head_layers == own


def test_the_actor_of_a_method_with_experts_is_not_reset() -> None:
    """Evaluations of finished tasks that are repeated would be of weights that are gone."""
    with pytest.raises(UserError, match="--reset actor: reset-distill keeps its actor"):
        setup_of("reset-distill", {"reset": "critic,actor"})
    assert setup_of("reset-distill", {"reset": "critic,heads"}).options.reset == "critic,heads"
    assert setup_of("progress-compress", {"reset": "actor"}).options.reset == "actor"


def test_a_critic_that_a_method_remembers_with_is_not_reset() -> None:
    """A protocol's reset is left out, in the record too; one that is asked for is refused."""

    def reset(name: str, given: dict[str, Any] | None = None) -> str:
        method, entry = load_method(name)
        return str(make_setup(method, entry, "componet", given or {}).options.reset)

    keeping = {"er", "perfect-memory", "recall", "agem"}
    assert {name for name in BASES if reset(name) == "none"} == keeping
    assert {reset(name) for name in BASES.keys() - keeping} == {"critic"}
    for name in ("clonex", "ewc", "l2", "mas"):
        assert reset(name, {"critic_coef": 1.0}) == "none"
    with pytest.raises(UserError, match="--reset critic: er learns earlier tasks with its critic"):
        setup_of("er", {"reset": "critic,heads"})
    assert setup_of("er", {"reset": "actor"}).options.reset == "actor"


def test_depths_of_heads_that_are_asked_for_stay() -> None:
    asked = {"layers": 3, "critic_head_layers": 3}
    assert setup_of("recall", asked).network.critic_head_layers == 3
    _, entry = load_method("finetuning")
    unshared = replace(entry, options={"actor_head_layers": 4})
    assert make_setup("finetuning", unshared, "paper", {}).network.actor_head_layers == 4


def test_a_task_may_have_its_first_updates_at_its_last_step_but_not_later() -> None:
    """600 steps, counted from 0: the last is step 599."""
    method, entry = load_method("finetuning")
    make_setup(method, entry, "smoke", {"update_every": 599})
    for given in ({"update_every": 600}, {"update_every": 300, "update_after": 301}):
        with pytest.raises(UserError, match=r"--update-after \d+ with --update-every \d+ leaves"):
            make_setup(method, entry, "smoke", given)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_method_has_settings_under_every_protocol(protocol: str) -> None:
    for name in METHODS:
        method, entry = load_method(name)
        network = make_setup(method, entry, protocol, {}).network
        assert max(network.actor_head_layers, network.critic_head_layers) <= network.layers


def test_joint_training_is_evaluated_where_other_methods_are() -> None:
    """Reports need an evaluation of it at the end of each task's steps."""

    def runs(method: str, every: int, tasks: int = 3) -> list[Any]:
        sequence = replace(point3, tasks=point3.tasks[:tasks])
        given = {"steps_per_task": 500, "eval_every": every}
        entry = METHODS[method]
        return runs_of(method, method, entry, "smoke", given, wanted=[sequence], seeds=[0])

    point3 = sequences.get("point3")
    assert runs("finetuning", 70) and runs("multitask", 50) and runs("multitask", 70, tasks=1)
    with pytest.raises(UserError, match="--steps-per-task 500 is no multiple of --eval-every 70"):
        runs("multitask", 70)


def test_the_componet_protocol_has_its_rules() -> None:
    method, entry = load_method("ewc")
    setup = make_setup(method, entry, "componet", {"lr": 3e-4})
    assert setup.network == NetworkConfig(
        layers=2, activation="relu", layer_norm="off", init="torch", log_std="tanh"
    )
    assert (setup.env.horizon, setup.env.record()["success"]) == (500, "last")
    assert (setup.sac.actor_every, setup.sac.initial_log_alpha, setup.sac.lr) == (2, 0, 3e-4)
    assert setup.options.reset == "critic"  # replay, temperature and optimiser are new anyway
    assert Setup.from_record(setup.record(), entry.method.config_class) == setup


@dataclass(frozen=True)
class WindyConfig(EnvConfig):
    """A suite as docs/development.md describes: a subclass, listed in ENV_CONFIGS."""

    suite = "windy"

    gust: float = option(0.0, "Strongest wind.", minimum=0)


@pytest.fixture
def windy(monkeypatch: pytest.MonkeyPatch) -> sequences.Sequence:
    monkeypatch.setitem(ENV_CONFIGS, "windy", WindyConfig)
    monkeypatch.setitem(envs.SUITES, "windy", replace(pointmass.SUITE, config_class=WindyConfig))
    return sequences.Sequence("mine", ("reach-0-1",), "windy")


def test_a_new_suite_has_options_of_its_own(windy: sequences.Sequence) -> None:
    method, entry = load_method("finetuning")
    setup = make_setup(method, entry, "paper", {"gust": 2}, windy)
    assert setup.env == WindyConfig(gust=2.0)
    label = make_label(method, entry, "paper", {"gust": 2}, swept=["gust"])
    assert label == "finetuning (gust=2.0)"
    for given, sequence, message in (
        ({"gust": -1}, windy, "--gust: -1 is too small"),
        ({"obs": "full39"}, windy, "--obs is not an option of windy environments"),
        ({"gust": 2}, sequences.get("point3"), "--gust is not an option of pointmass"),
        ({"gust": 2}, sequences.get("cw3-1"), "--gust is not an option of metaworld"),
    ):
        with pytest.raises(UserError, match=message):
            make_setup(method, entry, "paper", given, sequence)


@pytest.mark.usefixtures("windy")
def test_the_command_line_knows_options_of_new_suites() -> None:
    command = ["run", "--method", "finetuning", "--seq", "point3", "--dry-run", "--gust"]
    refused = CliRunner().invoke(cli, [*command, "2"]).exception
    assert str(refused).startswith("--gust is not an option of pointmass environments")
    assert "-2.0 is too small" in CliRunner().invoke(cli, [*command, "-2"]).output


def test_options_that_only_go_together_have_a_label() -> None:
    @dataclass(frozen=True)
    class Config(MethodConfig):
        low: float = option(0.0, "Low.")
        high: float = option(1.0, "High.")

        def __post_init__(self) -> None:
            if self.low >= self.high:
                raise UserError("low must be below high")

    class Own(Method[Config]):
        config_class = Config

    label = make_label("Own", Entry(Own), "paper", {"low": 2.0, "high": 3.0})
    assert label == "Own (low=2.0, high=3.0)"

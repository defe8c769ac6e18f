"""Options that every method shares, and protocols."""

from typing import Any

import pytest

from cwbench.experiment.build import (
    load_method,
    make_setup,
    parse_unshared,
    with_unshared,
)
from cwbench.spec.config import (
    GROUPS,
    PROTOCOLS,
    EnvConfig,
    MetaWorldConfig,
    MethodConfig,
    PointMassConfig,
)
from cwbench.spec.errors import UserError
from cwbench.spec.options import (
    checked,
    field_names,
)
from cwbench.spec.segment import Setup


def setup_of(name: str, given: dict[str, Any], unshared: str | None = None) -> Any:
    method, entry = load_method(name)
    names = parse_unshared(unshared)
    return make_setup(method, entry, "paper", with_unshared(names, entry, "paper", given))


def test_hidden_stands_for_width_and_layers() -> None:
    """Equal networks have equal records, so equal ids, however they were asked for."""
    plain = setup_of("pm", {"width": 64, "layers": 3})
    assert setup_of("pm", {"hidden": "64,64,64"}) == plain
    other = setup_of("pm", {"hidden": "64,32"}).network
    assert (other.units, other.layers, other.hidden) == ((64, 32), 2, "64,32")


@pytest.mark.parametrize(
    ("text", "same"), [("-20.0, 2", "-20,2"), ("-5.0,2.0", "-5,2"), ("-5,1e-1", "-5,0.1")]
)
def test_equal_ranges_of_log_std_have_one_record(text: str, same: str) -> None:
    """Python's (-5.0, 2.0) is written -5,2."""
    setup = setup_of("pm", {"log_std_range": text})
    assert setup == setup_of("pm", {"log_std_range": same})
    assert setup.record()["network"].get("log_std_range", "-20,2") == same


def test_network_options_are_recorded_unless_they_have_their_defaults() -> None:
    options = {"hidden": "64,32", "activation": "relu", "layer_norm": "off", "init": "torch",
               "log_std": "tanh", "log_std_range": "-5,2"}  # fmt: skip
    setup, plain = setup_of("pm", options), setup_of("pm", {})
    assert not options.keys() & plain.record()["network"].keys()
    assert options.items() <= setup.record()["network"].items()
    assert Setup.from_record(setup.record(), load_method("pm")[1].method.config_class) == setup


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hidden": "64,x"}, "--hidden 64,x: not a list of numbers; write 256,256"),
        ({"hidden": "64,0"}, "--hidden 64,0: layers have 1 to 65,536 units"),
        ({"hidden": "64,64", "width": 32}, "--hidden already sets --width and --layers"),
        (
            {"log_std_range": "2,-20"},
            "--log-std-range 2,-20: not a lower and an upper bound; write -20,2",
        ),
        ({"log_std_range": "nan,2"}, "not a lower and an upper bound"),
        ({"log_std_range": "2"}, "--log-std-range 2: two numbers are needed"),
        ({"activation": "elu"}, "'elu' is not one of 'leaky-relu', 'relu', 'tanh'"),
    ],
)
def test_unsuitable_network_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        setup_of("pm", given)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("none", "none"),
        ("critic,actor", "actor,critic"),
        ("critic, alpha,replay,optimizer", "critic"),
        ("alpha", "none"),
    ],
)
def test_parts_are_named_in_one_order_without_those_implied(text: str, value: str) -> None:
    assert checked(MethodConfig, "reset", text) == value


@pytest.mark.parametrize("text", ["policy", "none,actor", "actor,", ""])
def test_unknown_parts_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not one of actor, critic, heads, alpha"):
        checked(MethodConfig, "reset", text)


def test_records_of_meta_world_name_no_suite() -> None:
    """Ids of segments are older than suites."""
    for config in (MetaWorldConfig(reward="v2"), PointMassConfig(horizon=7)):
        record = config.record()
        assert ("suite" in record) == (config.suite != "metaworld")
        assert EnvConfig.from_record(record) == config


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_sets_options_that_exist(name: str) -> None:
    known = {field for group in GROUPS.values() for field in field_names(group)}
    assert PROTOCOLS[name].keys() <= known | field_names(MethodConfig)

"""Protocols of one's own."""

import re
from pathlib import Path

import pytest

from cwbench.experiment.build import load_method, make_setup, runs_of
from cwbench.sequences import expand
from cwbench.spec.config import PROTOCOLS
from cwbench.spec.errors import UserError
from cwbench.spec.protocol import Protocol, parse_protocol, protocol_title


def written(folder: Path, text: str, name: str = "mylab.toml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_has_its_base_and_what_it_changes(tmp_path: Path) -> None:
    text = 'base = "demo"\n[options]\nsteps-per-task = 2_000\nhidden = [32, 16]\nreset = "critic"'
    found = parse_protocol(written(tmp_path, text))
    own = {"steps_per_task": 2000, "hidden": "32,16", "reset": "critic"}
    assert found.options == PROTOCOLS["demo"] | own
    assert re.fullmatch(r"mylab\+[0-9a-f]{6}", found.name) and protocol_title(found.name) == "mylab"
    assert parse_protocol(found) is found
    assert parse_protocol("demo") == Protocol("demo", PROTOCOLS["demo"])
    assert protocol_title("demo") == "demo"


def test_files_of_one_name_with_other_options_are_other_protocols(tmp_path: Path) -> None:
    one, same, other = (
        parse_protocol(written(tmp_path, f'name = "mylab"\n{rest}', f"{number}.toml")).name
        for number, rest in enumerate(
            [
                'base = "smoke"\n[options]\nlr = 0.01',
                'base = "smoke"\n[options]\nlr = 1e-2\nwidth = 32',  # as smoke has it
                'base = "smoke"\n[options]\nlr = 1e-3',
            ]
        )
    )
    assert one == same != other


def test_segments_are_those_of_the_same_values_given_as_options(tmp_path: Path) -> None:
    """The name is not part of an id; the label names no option that the protocol sets."""
    method, entry = load_method("recall")
    own = {"steps_per_task": 700, "lr": 0.01, "reset": "actor"}
    text = 'base = "smoke"\n[options]\nsteps_per_task = 700\nlr = 0.01\nreset = "actor"'
    file = written(tmp_path, text)
    [given], [read] = (
        runs_of("recall", method, entry, protocol, options, wanted=expand("point3"), seeds=[0])
        for protocol, options in (("smoke", own), (file, {}))
    )
    assert [s.id for s in read.segments] == [s.id for s in given.segments]
    assert read.label == "recall" and read.protocol == parse_protocol(file).name


def test_depths_of_heads_that_a_file_sets_stay(tmp_path: Path) -> None:
    """Only a method's own are fitted to the network, as where the values are given as options."""
    name, entry = load_method("recall")
    options = "layers = 3\ncritic_head_layers = 3"
    file = written(tmp_path, f'base = "compact"\n[options]\n{options}')
    assert make_setup(name, entry, file, {}).network.critic_head_layers == 3
    with pytest.raises(UserError, match="--critic-head-layers 3 is larger than --layers 2"):
        make_setup(name, entry, file, {"layers": 2})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("steps_per_task = 5", "unknown key 'steps_per_task'; allowed: name, base, options"),
        ("", "options: expected a table of one or more options"),
        ('name = "smoke"\n[options]\nlr = 1.0', "name: 'smoke' is a protocol of cwbench"),
        ('name = "a b"\n[options]\nlr = 1.0', "name: a protocol's name may hold letters"),
        ('base = "other"\n[options]\nlr = 1.0', "base: unknown protocol 'other'"),
        ("base = 3\n[options]\nlr = 1.0", "base: unknown protocol '3'"),
        ("[options]\nlr = 20", "options: lr: 20 is too large"),
        ("[options]\nsteps_per_tsk = 5", "options: unknown option 'steps_per_tsk'; did you mean"),
        ("[options]\nlambda = 5", "options: unknown option 'lambda'; a protocol sets options that"),
        ('[options]\nhidden = "64,many"', "options: --hidden 64,many: not a list of numbers"),
        ("[options]\nsteps_per_task = [5, 6]", "options: steps_per_task: [5, 6] is not a whole"),
        (
            "[options]\nlr = 0.1\nsteps_per_task = 5\nsteps-per-task = 6",
            "options: steps-per-task: given",
        ),
        ("[options", "Expected ']'"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_file_and_key(
    tmp_path: Path, text: str, line: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UserError, match=re.escape(f"{file}: {line}")) as caught:
        parse_protocol(file)
    assert "\n" not in str(caught.value)


def test_unknown_protocols_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown protocol 'compat'; did you mean 'compact'"):
        parse_protocol("compat")
    with pytest.raises(UserError, match="no such file"):
        parse_protocol(str(tmp_path / "none.toml"))

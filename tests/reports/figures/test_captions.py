"""What stands below figures."""

from pathlib import Path

import pytest
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Options
from cwbench.reports.figures import figures
from cwbench.reports.figures.captions import caption

SMOOTH = "trailing means of at most 3 evaluations within a task"


def captions(results: Path) -> dict[str, str]:
    study = build.read(results, Options(level=0.95))
    planned = figures.plan(Scores(study, study.protocols[0]))
    return {name: figure.caption for name, figure in planned.items()}


def test_captions_name_sequences_and_bands(triplets: Path) -> None:
    found = captions(triplets)
    for name, text in {
        "cw3-average": f"CW3. Average success over all tasks of a sequence, {SMOOTH}. Bands: 95 %",
        "cw3-critic-loss": f"CW3. Critic loss while training, {SMOOTH}. Bands: 95 % t",
        "aggregates": "Aggregates of average performance with 95 % bootstrap intervals.",
        "single-success": f"Single tasks. Success while a task is learned alone, {SMOOTH}.",
    }.items():
        assert found[name].startswith(text)


def test_captions_of_diagnostics_name_the_network(with_diagnostics: Path) -> None:
    found = captions(with_diagnostics)
    assert found["cw3-dormant-actor"].startswith("CW3. Dormant units (%) of the actor at eval")
    assert found["cw3-kl"].startswith("CW3. KL from earlier policies at evaluations, ")


def test_captions_of_pairs_and_of_settings(tmp_path: Path) -> None:
    """A method called KLIP has matrices of pairs, not a KL."""
    settings = [small("klip"), small("klip", coef=1.0)]
    write_results(tmp_path, sequence_names=["pair-0-1"], settings=settings, seeds=[0])
    found = captions(tmp_path)
    assert found["pairs-klip"].startswith("Pairs of tasks: success on both tasks")
    assert found["pairs-curves-q"].startswith(f"Pairs. Q value while training, {SMOOTH}")
    several = "Pairs. Average success with several settings of one method"
    assert found["pairs-curves-ablation-klip"].startswith(several)


def test_the_caption_of_transfer_names_what_replaces_references(tmp_path: Path) -> None:
    settings = [small("ewc"), small("independent")]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=settings, seeds=range(2))
    found = captions(tmp_path)
    note = " Reference of transfer on "
    assert {name for name in found if note in found[name]} == {
        "transfer",
        "performance-transfer",
        "cw3-metrics",
    }


@pytest.mark.parametrize(
    ("band", "end"), [("sd", "one standard deviation over seeds."), ("runs", "single runs.")]
)
def test_captions_say_what_bands_are(band: str, end: str) -> None:
    assert caption("average", Options(band=band)).endswith(end)

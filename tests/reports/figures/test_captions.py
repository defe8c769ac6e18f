"""What stands below figures."""

import pytest

from cwbench.reports.analysis.names import FAMILIES
from cwbench.reports.analysis.study import Options
from cwbench.reports.figures.captions import caption

SMOOTH = "trailing means of at most 3 evaluations within a task"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "cw3-average",
            f"CW3. Average success over all tasks of a sequence, {SMOOTH}. Bands: 95 %",
        ),
        ("cw3-critic-loss", f"CW3. Critic loss while training, {SMOOTH}. Bands: 95 % t"),
        ("cw10-effective-rank-actor", "CW10. Effective rank of the actor at evaluations, "),
        ("other-kl", "Other sequences. KL from earlier policies at evaluations, "),
        ("cw3-q-2", "CW3. Q value of methods with values on another scale while training, "),
        ("aggregates", "Aggregates of average performance with 95 % bootstrap intervals."),
        ("cw3-ablation-recall", "CW3. Average success with several settings of one method"),
        ("pairs-klip", "Pairs of tasks: success on both tasks"),  # not a KL
        ("pairs-curves-q", f"Pairs. Q value while training, {SMOOTH}"),
        ("tuning-average-1", "Settings tried by cwbench tune: mean anytime"),
    ],
)
def test_captions_name_sequences_and_bands(name: str, text: str) -> None:
    assert caption(name, Options(level=0.95), FAMILIES.__getitem__).startswith(text)


def test_captions_say_what_bands_are() -> None:
    found = {
        band: caption("cw3-average", Options(band=band), FAMILIES.__getitem__)
        for band in ("sd", "runs")
    }
    assert found["sd"].endswith("one standard deviation over seeds.")
    assert found["runs"].endswith("Thin lines: single runs.")

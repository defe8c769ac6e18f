"""What stands below figures."""

import pytest

from cwbench.reports.analysis.names import FAMILIES
from cwbench.reports.analysis.study import Options
from cwbench.reports.figures.captions import caption


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cw3-average", "CW3. Average success over all tasks of a sequence. Bands: 95 % t"),
        ("cw3-critic-loss", "CW3. Critic loss while training. Bands: 95 % t"),
        ("cw3-q-2", "CW3. Q value of methods with values on another scale while training."),
        ("cw10-effective-rank-actor", "CW10. Effective rank of the actor at evaluations. Bands"),
        ("other-kl", "Other sequences. KL from earlier policies at evaluations."),
        ("aggregates", "Aggregates of average performance with 95 % bootstrap intervals."),
        ("cw3-ablation-recall", "cw3 ablation recall"),
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

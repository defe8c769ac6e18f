"""The curves of the page as text; `test_page` opens them in a browser."""

from pathlib import Path

from cwbench.reports import build
from cwbench.reports.page.charts import curves_section


def test_diagnostics_are_curves_where_they_were_measured(with_diagnostics: Path, triplets: Path):
    study, plain = build.read(with_diagnostics), build.read(triplets)
    section = curves_section(study, study.protocols[0])
    plot = section.split('aria-label="CW3-1: dormant units (%), actor"')[1].split("aria-label")[0]
    assert "<title>Fine-tuning: 41 at the last evaluation</title>" in plot
    assert 'value="dormant"' in section and 'value="kl"' in section
    assert 'value="weight-norm"' not in section  # measured nowhere
    assert 'value="dormant"' not in curves_section(plain, plain.protocols[0])

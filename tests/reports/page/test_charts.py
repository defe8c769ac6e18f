"""The curves of the page as text; `test_page` opens them in a browser."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.study import Study
from cwbench.reports.figures import figures
from cwbench.reports.page import charts
from cwbench.reports.page.charts import curves_section


def test_diagnostics_are_curves_where_they_were_measured(with_diagnostics: Path, triplets: Path):
    study, plain = build.read(with_diagnostics), build.read(triplets)
    section = curves_section(study, study.protocols[0])
    plot = section.split('aria-label="CW3-1: dormant units (%), actor"')[1].split("aria-label")[0]
    assert "<title>Fine-tuning: 41 at the last evaluation</title>" in plot
    assert 'value="dormant"' in section and 'value="kl"' in section
    assert 'value="weight-norm"' not in section  # measured nowhere
    assert 'value="dormant"' not in curves_section(plain, plain.protocols[0])


def test_matrices_of_pairs_take_no_points_from_curves(tmp_path: Path):
    write_results(tmp_path, sequence_names=["cw3-1"], settings=[small("ewc")], seeds=[0])
    alone = charts.points_of_a_line(build.read(tmp_path))
    pairs = [f"pair-{first}-{second}" for first in range(2) for second in range(10)]
    write_results(tmp_path, sequence_names=pairs, settings=[small("ewc")], seeds=[0], name="pairs")
    assert charts.points_of_a_line(build.read(tmp_path)) == alone == (30, charts.MOST)


def test_average_and_tasks_get_their_points_first(study: Study, monkeypatch: pytest.MonkeyPatch):
    """Room for 12 groups' four such lines of 30 evaluations, and little more."""
    assert "evaluations drawn" not in curves_section(study, study.protocols[0])
    monkeypatch.setattr(charts, "POINTS", 2_000)
    monkeypatch.setattr(charts, "FEWEST", 6)
    section = curves_section(study, study.protocols[0])
    among = "the first and the last of each task are among them."
    where = "training success, losses and everything else"
    assert f">6 of 30 evaluations drawn of {where}; {among}</p>" in section
    for kind, count in (("average success", 30), ("success on task 1", 30), ("Q value", 6)):
        plot = section.split(f'aria-label="CW3-1: {kind}')[1].split("</g></svg>")[0]
        line = plot.split('class="mean" points="')[1].split('"')[0]
        steps = [int(point.split(",")[0]) for point in line.split()]
        assert len(steps) == count and {1000, 10_000, 11_000, 20_000, 30_000} <= {*steps}


def test_losses_on_another_scale_have_a_plot_of_their_own(study: Study):
    for group in study.groups:
        if group.method == "recall":
            group.logged["q"][:] = 1e-3
    section = curves_section(study, study.protocols[0])
    own = section.split('aria-label="CW3-1: Q value, RECALL"')[1].split("aria-label")[0]
    assert "<title>RECALL: 0.001 at the last" in own and "<title>Fine-tuning" not in own
    assert 'aria-label="CW3-1: critic loss"' in section
    made = dict(figures.plan(Scores(study, study.protocols[0])))
    assert len(made["cw3-q"].make().axes[0].lines) == 5
    assert made["cw3-q-2"].caption.startswith("CW3. Q value of methods with values on another")
    [line] = made["cw3-q-2"].make().axes[0].lines
    assert_allclose(np.asarray(line.get_ydata(), float), 1e-3)

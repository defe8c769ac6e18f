"""Figures show the numbers they claim to show."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.testing import assert_allclose
from sample_results import small, write_results

from cwbench.reports import build
from cwbench.reports.analysis import metrics, names
from cwbench.reports.analysis.pairs import matrices
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import main_setups, slots
from cwbench.reports.figures import figures, style
from cwbench.reports.figures.matrices import pair_matrices

PAIRS = ("pair-0-1", "pair-1-0", "pair-2-2")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    root = tmp_path_factory.mktemp("pairs")
    write_results(root, sequence_names=PAIRS, settings=[small("perfect_memory")], seeds=range(3))
    study = build.read(root)
    return Scores(study, study.protocols[0])


def test_pair_matrices_hold_the_end_values(pairs: Scores):
    groups = pairs.study.groups
    found = matrices(pairs, groups)
    [group] = [g for g in groups if g.sequence == "pair-1-0"]
    end = metrics.end_values(group.success, pairs.window)  # [R, 2, 2]
    assert found.values["first"][1, 0] == pytest.approx(end[:, 1, 0].mean())
    assert found.values["second"][1, 0] == pytest.approx(end[:, 1, 1].mean())
    assert found.values["forgetting"][1, 0] == pytest.approx((end[:, 0, 0] - end[:, 1, 0]).mean())
    assert found.pairs == 3
    mean = np.nanmean(found.values["second"])
    assert found.averages["second"].value == pytest.approx(mean)


def test_the_counts_the_paper_quotes(pairs: Scores):
    found = matrices(pairs, pairs.study.groups)
    found.values["second"][:] = np.nan
    found.values["second"].flat[:5] = [0.0, 0.0, 0.3, 0.5, 0.9]
    found.values["forgetting"][:] = np.nan
    found.values["forgetting"][0, :3] = [0.1, 0.11, -0.2]
    assert list(found.counts().values()) == [2, 1, 1]
    assert found.pairs == 5


def test_matrices_draw_every_pair_and_hatch_the_rest(pairs: Scores):
    figure = pair_matrices(matrices(pairs, pairs.study.groups))
    first, second, lost = figure.axes[:3]
    assert [len(axis.texts) for axis in (first, second, lost)] == [3, 3, 3]
    assert len(first.patches) == 6  # of the three tasks that occur
    assert first.images[0].cmap.name == second.images[0].cmap.name == "Reds_r"
    assert lost.images[0].cmap.name == "Reds"  # the reversed bar


def test_an_average_curve_is_the_mean_over_seeds(triplets: Path):
    study = build.read(triplets)
    setups = main_setups(study.of(study.protocols[0], "cw3"))
    figure = figures.curves(setups, figures.average_runs, "average success")
    axis = figure.axes[0]
    boundaries, lines = axis.lines[:2], axis.lines[2:]
    assert [np.asarray(line.get_xdata())[0] for line in boundaries] == [10, 20]  # thousand steps
    assert len(lines) == 6
    group = next(iter(setups.values()))[0]
    want = metrics.smoothed(metrics.average_curve(group.success).mean(0), 10, 3)
    assert_allclose(np.asarray(lines[0].get_ydata()), want)
    assert np.asarray(lines[0].get_xdata())[[0, -1]].tolist() == [1, 30]


def test_training_figures_show_what_was_logged(triplets: Path):
    study = build.read(triplets)
    group = study.of(study.protocols[0], "cw3")[0]
    text = (triplets / "segments" / group.runs[0].folders[1] / "train.csv").read_text()
    header, first, *_ = (line.split(",") for line in text.splitlines())
    for name in names.STATISTICS:
        assert group.logged[name][0, 1, 0] == float(first[header.index(name)])
    made = dict(figures.plan(Scores(study, study.protocols[0])))["cw3-q"]()
    curve = made.axes[0].lines[2]
    # As sample results have it, not cut to [0, 1].
    assert_allclose(np.asarray(curve.get_ydata(), float), 3.0)


def test_figures_of_diagnostics_show_the_mean_over_seeds(with_diagnostics: Path, triplets: Path):
    study = build.read(with_diagnostics)
    plan = dict(figures.plan(Scores(study, study.protocols[0])))
    lines = plan["cw3-dormant-actor"]().axes[0].lines[2:]  # after the boundaries of tasks
    assert len(lines) == 2  # EWC has none
    assert_allclose(np.asarray(lines[0].get_ydata(), float), np.repeat([21.0, 31.0, 41.0], 10))
    assert_allclose(np.asarray(plan["cw3-kl"]().axes[0].lines[2].get_xdata())[[0, -1]], [11, 30])
    plain = build.read(triplets)
    assert not plan.keys() & {"cw3-weight-norm-actor"}
    assert "cw3-dormant-actor" not in dict(figures.plan(Scores(plain, plain.protocols[0])))


def test_the_legend_of_profiles_lies_below_the_axis_title(triplets: Path):
    study = build.read(triplets)
    with matplotlib.rc_context(style.STYLE):
        figure = figures.profiles(Scores(study, study.protocols[0]), ["cw3"])
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        [legend] = figure.legends
        title = figure.axes[0].xaxis.label.get_window_extent(renderer)
        assert legend.get_window_extent(renderer).y1 <= title.y0


def test_a_method_keeps_its_colour(triplets: Path):
    study = build.read(triplets)
    setups = main_setups(study.of(study.protocols[0], "cw3"))
    alone = {key: rows for key, rows in setups.items() if rows[0].method == "recall"}
    assert slots(alone) == [slots(setups)[-1]]


def test_the_palette_is_told_apart_in_grey():
    """Lines of equal brightness must differ in their dashes."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in style.COLOURS])
    grey = rgb @ [0.299, 0.587, 0.114]
    for first in range(6):
        for second in range(first):
            same = style.DASHES[first] == style.DASHES[second]
            assert not same or abs(grey[first] - grey[second]) > 60

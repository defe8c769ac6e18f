"""Figures show the numbers they claim to show."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose
from sample_results import change_experiment, singles, small, write_results

from cwbench import sequences
from cwbench.reports import build
from cwbench.reports.analysis import metrics, names
from cwbench.reports.analysis.bands import average_runs
from cwbench.reports.analysis.scores import Scores
from cwbench.reports.analysis.setups import PALETTE, main_settings
from cwbench.reports.analysis.study import Study
from cwbench.reports.figures import figures, style
from cwbench.reports.page.plots import classes


def test_an_average_curve_is_the_mean_over_seeds(study: Study):
    settings = main_settings(study.of(study.protocols[0], "cw3"))
    figure = figures.curves(settings, average_runs, "average success")
    axis = figure.axes[0]
    boundaries, lines = axis.collections[0], axis.lines
    assert isinstance(boundaries, LineCollection)
    assert [line[0, 0] for line in boundaries.get_segments()] == [10, 20]  # thousand steps
    assert len(lines) == 6
    group = settings[0].groups[0]
    want = metrics.smoothed(metrics.average_curve(group.success).mean(0), 10, 2)
    assert_allclose(np.asarray(lines[0].get_ydata()), want)
    assert np.asarray(lines[0].get_xdata())[[0, -1]].tolist() == [1, 30]


def test_training_figures_show_what_was_logged(triplets: Path):
    study = build.read(triplets)
    group = study.of(study.protocols[0], "cw3")[0]
    text = (triplets / "segments" / group.runs[0].folders[1] / "train.csv").read_text()
    header, first, *_ = (line.split(",") for line in text.splitlines())
    for name in names.STATISTICS:
        assert group.logged[name][0, 1, 0] == float(first[header.index(name)])
    made = dict(figures.plan(Scores(study, study.protocols[0])))["cw3-q"].make()
    curve = made.axes[0].lines[0]
    # As sample results have it, not cut to [0, 1].
    assert_allclose(np.asarray(curve.get_ydata(), float), 3.0)


def test_a_few_pairs_have_curves_and_many_have_matrices_only(pairs: Scores, tmp_path: Path):
    plan = figures.plan(pairs)
    drawn = {name.removeprefix("pairs-curves-") for name in plan if "curves" in name}
    assert {"average", "current", "critic-loss", "q", "tasks"} <= drawn
    first = plan["pairs-curves-tasks"].make().axes
    assert [axis.get_title() for axis in first] == ["pair-0-1", "pair-1-0", "pair-2-2"]
    group = pairs.groups("pairs")[0]
    [line] = plan["pairs-curves-current"].make().axes[0].lines
    want = metrics.smoothed(group.training.reshape(3, -1).mean(0), 10, 2)
    assert_allclose(np.asarray(line.get_ydata(), float), want)
    many = [f"pair-0-{second}" for second in range(10)] + [f"pair-1-{n}" for n in range(4)]
    write_results(tmp_path, sequence_names=many, settings=[small("recall")], seeds=[0])
    study = build.read(tmp_path)
    assert list(figures.plan(Scores(study, study.protocols[0]))) == ["pairs-recall"]


def read(results: Path) -> Scores:
    study = build.read(results)
    return Scores(study, study.protocols[0])


def test_tasks_trained_alone_have_a_curve_each(tmp_path: Path):
    tasks = ["push", "hammer"]
    write_results(tmp_path, sequence_names=singles(tasks), settings=[small("finetuning")])
    scores = read(tmp_path)
    made = figures.plan(scores)["single-success"].make().axes
    groups = {group.sequence: group for group in scores.groups("single")}
    assert [axis.get_title() for axis in made] == list(groups) == ["single-hammer", "single-push"]
    for axis, group in zip(made, groups.values(), strict=True):
        [line] = axis.lines
        want = metrics.smoothed(group.success[:, 0, :, 0].mean(0), 10, 2)
        assert_allclose(np.asarray(line.get_ydata(), float), want)
    more = list(sequences.get("mt50").tasks[:14])
    write_results(tmp_path, sequence_names=singles(more), settings=[small("ewc")], seeds=[0])
    assert "single-success" not in figures.plan(read(tmp_path))


def test_figures_of_diagnostics_show_the_mean_over_seeds(with_diagnostics: Path, triplets: Path):
    study = build.read(with_diagnostics)
    plan = dict(figures.plan(Scores(study, study.protocols[0])))
    lines = plan["cw3-dormant-actor"].make().axes[0].lines
    assert len(lines) == 2  # EWC has none
    assert_allclose(np.asarray(lines[0].get_ydata(), float), np.repeat([21.0, 31.0, 41.0], 10))
    assert_allclose(
        np.asarray(plan["cw3-kl"].make().axes[0].lines[0].get_xdata())[[0, -1]], [11, 30]
    )
    plain = build.read(triplets)
    assert not plan.keys() & {"cw3-weight-norm-actor"}
    assert "cw3-dormant-actor" not in dict(figures.plan(Scores(plain, plain.protocols[0])))


def test_the_legend_of_profiles_lies_below_the_axis_title(study: Study):
    with matplotlib.rc_context(style.STYLE):
        figure = figures.profiles(Scores(study, study.protocols[0]), ["cw3"])
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        [legend] = figure.legends
        title = figure.axes[0].xaxis.label.get_window_extent(renderer)
        assert legend.get_window_extent(renderer).y1 <= title.y0


def test_no_two_methods_look_alike(tmp_path: Path):
    """Methods that the registry has eight places apart, and more of them than there are colours."""
    known = list(names.METHODS)
    methods = [known[0], known[8], known[16], *known[1:8], "mine"]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=map(small, methods), seeds=[0])
    study = build.read(tmp_path)
    groups = study.of(study.protocols[0], "cw3")
    by_method = {one.groups[0].method: one.slot for one in main_settings(groups)}
    found = list(by_method.values())
    assert [by_method[method] for method in known[:8]] == list(range(8))
    looks = [tuple(map(str, style.line_style(slot).values())) for slot in found]
    assert len(set(looks)) == len(set(map(classes, found))) == len(methods)
    few = main_settings([group for group in groups if group.method in (known[0], known[8])])
    assert len({one.slot % PALETTE for one in few}) == 2


def test_settings_of_one_label_have_figures_of_their_own(tmp_path: Path):
    """As after a method's own file was edited: the names of its figures would be equal."""
    settings = [small("ewc"), small("ewc", coef=1.0)]
    write_results(tmp_path, sequence_names=["pair-0-1"], settings=settings, seeds=[0])
    [file] = tmp_path.glob("experiments/*.json")
    change_experiment(file, lambda asked: [run.update(label="ewc") for run in asked["runs"]])
    study = build.read(tmp_path)
    assert [group.label for group in study.groups] == ["ewc", "ewc"]
    plan = figures.plan(Scores(study, study.protocols[0]))
    assert list(plan)[:2] == ["pairs-ewc", "pairs-ewc-2"]


def test_a_dollar_sign_in_a_name_is_one():
    with matplotlib.rc_context(style.STYLE):
        figure = style.nothing("coef=$\\x$")
        FigureCanvasAgg(figure).draw()  # an error if it were mathematics
        assert not figure.axes[0].texts[0].get_parse_math()


def test_one_legend_names_the_methods_of_all_families(tmp_path: Path):
    """Methods of one's own have the colours of the legend in every panel."""
    for sequence, methods in (("cw3-1", ["ewc", "mine", "yours"]), ("cw6-1", ["yours", "zeta"])):
        settings = map(small, methods)
        write_results(
            tmp_path, sequence_names=[sequence], settings=settings, seeds=[0, 1], name=sequence
        )
    study = build.read(tmp_path)
    plan = figures.plan(Scores(study, study.protocols[0]))
    for name in ("profiles", "after-switch"):
        figure = plan[name].make()
        [legend] = figure.legends
        colours = {
            text.get_text(): line.get_color()
            for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
        }
        assert list(colours) == ["EWC", "Mine", "Yours", "Zeta"]
        drawn = [
            [line.get_color() for line in axis.lines if len(np.asarray(line.get_xydata())) > 2]
            for axis in figure.axes
        ]
        assert drawn[0] == [colours[name] for name in ("EWC", "Mine", "Yours")]
        assert drawn[1] == [colours[name] for name in ("Yours", "Zeta")]


def test_long_names_are_not_cut_off(tmp_path: Path):
    methods = [
        "ewc",
        "packnet",
        "clonex",
        "recall",
        "MethodWithALongName",
        "my method tuned on cw3-1",
    ]
    write_results(tmp_path, sequence_names=["cw3-1"], settings=map(small, methods), seeds=[0, 1])
    study = build.read(tmp_path)
    plan = figures.plan(Scores(study, study.protocols[0]))
    with matplotlib.rc_context(style.STYLE):
        for name in ("cw3-average", "profiles", "ranks", "differences", "transfer", "aggregates"):
            figure = plan[name].make()
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            whole = figure.bbox.padded(2)  # pixels
            labels = [
                label
                for axis in figure.axes
                for label in (*axis.get_xticklabels(), *axis.get_yticklabels())
                if label.get_text()[:1].isalpha()  # numbers may lie outside an axis, unseen
            ]
            for part in (*figure.legends, *labels):
                box = part.get_window_extent(canvas.get_renderer())
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0, (
                    name,
                    part,
                )

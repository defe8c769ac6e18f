"""Videos of policies."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from countdown import COUNTDOWN, Countdown, configured
from PIL import Image

from cwbench import envs
from cwbench.cli import main
from cwbench.cli.options import own_methods
from cwbench.sharing.export import export
from cwbench.sharing.video import STILLS, Video, find_run, record, strip, tile, write
from cwbench.spec.config import MetaWorldConfig, PointMassConfig
from cwbench.spec.errors import UserError
from cwbench.spec.tasks import Task


def test_a_segment_is_filmed_on_every_task(
    shared_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [segment, _] = shared_results.glob("segments/perfect-memory-2-*")
    main(["video", str(segment), "--out", str(tmp_path / "videos")])
    shown = capsys.readouterr().out
    for name in ("reach-0-1", "reach-2-1", "all"):
        with Image.open(tmp_path / "videos" / f"{name}.gif") as image:
            assert getattr(image, "n_frames") == 20 // 4  # noqa: B009
        assert f"{name}.gif" in shown
    with Image.open(tmp_path / "videos" / "reach-2-1.png") as image:
        assert image.size == (STILLS * 320, 240)
    with Image.open(tmp_path / "videos" / "all.gif") as image:
        assert image.size == (640, 240)


def test_nothing_is_filmed_into_a_linked_folder(
    shared_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, home = tmp_path / "results", tmp_path / "home"
    shutil.copytree(shared_results, results)
    home.mkdir()
    (results / "videos").symlink_to(home)
    [segment, _] = results.glob("segments/perfect-memory-1-*")
    with pytest.raises(SystemExit, match="2"):
        main(["video", str(segment)])
    assert "leads out of" in capsys.readouterr().err and not list(home.iterdir())


OWN = """
from cwbench.learner import Method


class Own(Method):
    pass
"""


def test_a_method_of_ones_own_is_named(toy_run: Any, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    toy_run(tmp_path / "results", f"{tmp_path}/own.py:Own", tasks=("reach-0-1",))
    with pytest.raises(UserError, match=r"'Own' is not installed; name it with --method FILE"):
        next(export(tmp_path / "results", "weights"))
    main(["video", str(tmp_path / "results"), "--method", f"{tmp_path}/own.py:Own"])
    assert list(tmp_path.glob("results/videos/*/reach-0-1.gif"))
    own = own_methods([f"{tmp_path}/own.py:Own"])
    assert next(export(tmp_path / "results", "weights", methods=own)).exists()


def test_an_environment_that_draws_no_frames_is_refused() -> None:
    with pytest.raises(UserError, match=r"task countdown cannot be rendered; .* rgb_array"):
        envs.drawable("countdown", configured(COUNTDOWN), (110, 110))


class Painted(Countdown):
    """A countdown whose `render` gives whatever it was made with."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}

    def __init__(self, shade: Any = 7, render_mode: str | None = None) -> None:
        super().__init__()
        self.shade = shade

    def render(self) -> Any:
        if self.shade == "broken":
            raise RuntimeError("install a display")
        return np.full((4, 6, 3), self.shade, np.uint8) if self.shade else None


def test_an_error_in_drawing_is_one_line_that_names_the_task() -> None:
    """Gymnasium's classic control raises one where pygame is missing."""
    for shade, words in (
        ("broken", r"task painted: .*test_video\.py line \d+, in render: .*: install a display$"),
        (0, r"task painted: render returns no picture .* \[height, width, 3\] of uint8$"),
    ):
        config = configured(Task("painted", Painted, {"shade": shade}, horizon=10))
        with pytest.raises(UserError, match=words):
            envs.drawable("painted", config, (110, 110)).draw()
    shown = envs.drawable("painted", configured(Task("painted", Painted, horizon=10)), (110, 110))
    assert (shown.draw() == 7).all()


def test_the_point_is_drawn_where_it_is() -> None:
    shown = envs.drawable("reach-2-1", PointMassConfig(), (110, 110))
    shown.env.reset(np.random.default_rng(0))
    before = shown.draw()
    for _ in range(10):
        shown.env.step(np.array([1, 0, 0, 0], np.float32))  # to the right wall
    _, columns = np.nonzero((shown.draw() == (0, 114, 178)).all(2))
    assert columns.mean() > 100 and (before != shown.draw()).any()
    wide = envs.drawable("reach-2-1", PointMassConfig(), (320, 240))
    wide.env.reset(np.random.default_rng(0))
    rows, columns = np.nonzero((wide.draw() == (0, 158, 115)).all(2))
    assert abs(np.ptp(rows) - np.ptp(columns)) <= 1  # the goal is round


def test_films_of_different_sizes_are_tiled() -> None:
    """As of gymnasium environments, which choose the size of what they draw."""
    large, small = (Video("a", np.full((2, n, n, 3), 9, np.uint8)) for n in (60, 40))
    tiled = tile([large, small])
    assert tiled.shape == (2, 60, 120, 3)
    assert (tiled[:, 20:40, 60:100] == 9).all() and (tiled[:, 40:, 60:] == 0).all()


def test_tiles_hold_the_last_frame_of_shorter_films() -> None:
    long, short = (Video("a", np.full((n, 40, 60, 3), n, np.uint8)) for n in (5, 2))
    tiled = tile([long, short, short])
    assert tiled.shape == (5, 80, 120, 3)
    assert tiled[4, 39, 119].tolist() == [2, 2, 2] and not tiled[:, 40:, 60:].any()


def test_a_strip_ends_with_success() -> None:
    frames = np.zeros((21, 4, 6, 3), np.uint8) + np.arange(21, dtype=np.uint8)[:, None, None, None]
    shown = [strip(Video("a", frames, solved))[0, ::6, 0].tolist() for solved in (8, None)]
    assert STILLS == 5 and shown == [[0, 2, 4, 6, 8], [0, 5, 10, 15, 20]]


@pytest.mark.parametrize(
    ("success", "scores", "solved"),
    [
        ("any", [0, 1, 0, 1, 1], 1),
        ("any", [0, 1, 0, 0, 0], 1),
        ("last", [0, 1, 0, 1, 1], 3),
        ("last", [0, 1, 1, 1, 0], None),
    ],
)
def test_success_in_a_film_counts_as_in_the_run(
    success: Any, scores: list[int], solved: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under CompoNet's rules an episode is solved if its last step is."""
    steps = iter(scores)
    shown = SimpleNamespace(
        env=SimpleNamespace(
            reset=lambda rng: np.zeros(12), step=lambda action: (None, 0.0, next(steps), False)
        ),
        draw=lambda: np.zeros((4, 6, 3), np.uint8),
        close=lambda: None,
    )
    monkeypatch.setattr(envs, "drawable", lambda *_: shown)
    setup = SimpleNamespace(env=MetaWorldConfig(horizon=5, success=success))
    policy: Any = SimpleNamespace(
        task="push", segment=SimpleNamespace(setup=setup), act=lambda obs, deterministic: None
    )
    assert record(policy).solved == solved


def test_an_mp4_has_every_frame(tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    frames = np.zeros((12, 48, 64, 3), np.uint8)
    mp4, _ = write(tmp_path / "video", frames)
    assert ffmpeg.count_frames_and_secs(str(mp4))[0] == 12


def test_an_interrupted_film_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = np.zeros((8, 16, 16, 3), np.uint8)
    files = write(tmp_path / "video", frames)
    before = {file: file.read_bytes() for file in files}

    def interrupted(self: Image.Image, file: Path, **_: Any) -> None:
        file.write_bytes(b"GIF8")
        raise KeyboardInterrupt

    monkeypatch.setattr(Image.Image, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "video", frames + 1)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_folder_with_several_runs_needs_a_segment(shared_results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has 2 runs .* such as .*segments/perfect-memory-2-"):
        find_run(shared_results)
    with pytest.raises(UserError, match="neither a results folder nor a segment"):
        find_run(tmp_path)
    (tmp_path / "segments").mkdir()
    with pytest.raises(UserError, match="has no finished task; train one first"):
        find_run(tmp_path)


def test_a_segment_is_found_from_inside_its_folder(
    shared_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [segment, _] = shared_results.glob("segments/perfect-memory-2-*")
    monkeypatch.chdir(segment)
    run, position = find_run(Path("."))
    assert (run.folders[position], position) == (segment.name, 1)

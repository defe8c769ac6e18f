"""Videos of trained policies: one per task, and one with all tasks side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cwbench import envs
from cwbench.experiment.policy import Policy, load_policy
from cwbench.experiment.runs import Run, Runs, read_runs
from cwbench.spec.errors import UserError
from cwbench.spec.extras import is_installed
from cwbench.spec.statistics import count_of
from cwbench.store.files import replacing

if TYPE_CHECKING:
    from cwbench.envs.suite import Frame

SIZE = (320, 240)
FRAMES_PER_SECOND = 50
GIF_STEP = 4  # every fourth frame
STILLS = 5  # in a strip


@dataclass(frozen=True)
class Video:
    """One episode of a policy on a task."""

    task: str
    frames: NDArray[np.uint8]  # [T, H, W, 3]
    solved: int | None = None  # the frame before the step with success, if it counts as solved

    @property
    def success(self) -> bool:
        return self.solved is not None


def _runs(results: Path) -> Runs:
    return read_runs(results, {}, tables=())


def find_run(path: Path) -> tuple[Run, int]:
    """The run of a segment's folder and the segment's position; or a results folder's only run."""
    if (path / "segment.json").is_file():
        folder = path.absolute()  # `.` has no name
        runs = [run for run in _runs(folder.parents[1]) if folder.name in run.folders]
        if not runs:
            raise UserError(f"{path} belongs to no recorded run")
        return runs[0], runs[0].folders.index(folder.name)
    if not (path / "segments").is_dir():
        raise UserError(f"{path} is neither a results folder nor a segment's folder in one")
    finished = [run for run in _runs(path) if run.learned]
    if not finished:
        raise UserError(f"{path} has no finished task", "train one first")
    if len(finished) > 1:
        segment = f"{path}/segments/{finished[0].folders[finished[0].learned - 1]}"
        raise UserError(
            f"{path} has {len(finished)} runs with a finished task",
            f"name a segment, such as {segment}",
        )
    return finished[0], finished[0].learned - 1


def make_videos(
    path: Path,
    tasks: Sequence[str] = (),
    *,
    seed: int = 0,
    methods: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Iterator[Video]:
    """The policies of a finished segment, or of a run's last one, on every task learned by then."""
    run, position = find_run(path)
    if run.learned <= position:
        raise UserError(f"{path} is not finished", "train it first")
    learned = run.tasks if run.joint else run.tasks[: position + 1]
    after = None if run.joint else position
    for task in tasks or dict.fromkeys(learned):
        own = (methods or {}).get(run.method)
        yield record(load_policy(run, task, after=after, method=own, trust=trust), seed=seed)


def record(policy: Policy, *, seed: int = 0) -> Video:
    """An episode of the policy's mean actions; success counts as in the policy's run."""
    config = policy.segment.setup.env
    until_end = count_of(getattr(config, "success", None)) == "v3-last"
    shown = envs.drawable(policy.task, config, SIZE)
    frames: list[Frame] = []
    solved = None
    try:
        obs = shown.env.reset(np.random.default_rng(seed))
        for _ in range(config.horizon):
            frames.append(shown.draw())
            obs, _, score, *ends = shown.env.step(policy.act(obs, deterministic=True))
            if solved is None and score >= 1:
                solved = len(frames) - 1
            elif until_end and score < 1:
                solved = None
            if any(ends):
                break
    finally:
        shown.close()
    return Video(policy.task, np.stack(frames), solved)


def tile(videos: Sequence[Video]) -> NDArray[np.uint8]:
    """All in a grid; shorter videos stop at their last frame, smaller ones have black edges."""
    columns = math.ceil(math.sqrt(len(videos)))
    length, height, width = np.max([video.frames.shape[:3] for video in videos], axis=0)
    cells = [_held(labelled(video), length, height, width) for video in videos]
    cells += [np.zeros_like(cells[0])] * (-len(cells) % columns)
    rows = [np.concatenate(cells[i : i + columns], 2) for i in range(0, len(cells), columns)]
    return np.concatenate(rows, 1)


def strip(video: Video) -> NDArray[np.uint8]:
    """Stills side by side, from the start to success, or to the end: [H, STILLS * W, 3]."""
    last = len(video.frames) - 1 if video.solved is None else video.solved
    chosen = np.linspace(0, last, STILLS).round().astype(int)
    return np.concatenate(list(video.frames[chosen]), 1)


def _held(frames: NDArray[np.uint8], length: int, height: int, width: int) -> NDArray[np.uint8]:
    """Frames [T, H, W, 3] as [length, height, width, 3]."""
    _, *size = frames.shape[:3]
    edges = np.pad(frames, ((0, 0), (0, height - size[0]), (0, width - size[1]), (0, 0)))
    return np.concatenate([edges, np.repeat(edges[-1:], length - len(frames), 0)])


def labelled(video: Video) -> NDArray[np.uint8]:
    """The frames with the task's name, and whether the episode succeeds."""
    from PIL import Image, ImageDraw

    text = f"{video.task}: {'success' if video.success else 'no success'}"
    frames = []
    for frame in video.frames:
        image = Image.fromarray(frame)
        draw = ImageDraw.Draw(image)
        draw.rectangle((0, 0, image.width, 15), fill=(0, 0, 0))
        draw.text((4, 2), text, fill=(255, 255, 255))
        frames.append(np.asarray(image))
    return np.stack(frames)


def write_strip(file: Path, video: Video) -> Path:
    """FILE.png, in 128 colours: small enough for a README."""
    from PIL import Image

    png = file.with_name(f"{file.name}.png")
    with replacing(png) as partial:
        Image.fromarray(strip(video)).quantize(128).save(partial, format="PNG", optimize=True)
    return png


def write(file: Path, frames: NDArray[np.uint8]) -> list[Path]:
    """FILE.mp4, if there is an encoder, and FILE.gif."""
    from PIL import Image

    file.parent.mkdir(parents=True, exist_ok=True)
    images = [Image.fromarray(frame) for frame in frames[::GIF_STEP]]
    gif = file.with_name(f"{file.name}.gif")
    duration = 1000 * GIF_STEP // FRAMES_PER_SECOND
    with replacing(gif) as partial:
        images[0].save(
            partial,
            format="GIF",
            save_all=True,
            append_images=images[1:],
            duration=duration,
            loop=0,
        )
    if not is_installed("imageio_ffmpeg"):
        return [gif]
    mp4 = file.with_name(f"{file.name}.mp4")
    with replacing(mp4) as partial:
        _encode(partial, frames)
    return [mp4, gif]


def _encode(file: Path, frames: NDArray[np.uint8]) -> None:
    """An mp4, whatever the file is called."""
    import imageio_ffmpeg

    size = (frames.shape[2], frames.shape[1])
    stream = imageio_ffmpeg.write_frames(
        str(file),
        size,
        fps=FRAMES_PER_SECOND,
        macro_block_size=8,
        output_params=["-f", "mp4"],
    )
    stream.send(None)
    for frame in frames:
        stream.send(np.ascontiguousarray(frame))
    stream.close()

"""`cwbench video`: videos of a segment's policies."""

from pathlib import Path

import click

from cwbench.cli.folders import PATH, writable
from cwbench.cli.options import Number, method_option, own_methods


@click.command()
@click.argument("run", type=PATH)
@click.option("--task", "tasks", multiple=True, help="Only this task; may be given several times.")
@click.option(
    "--seed", type=Number(int, minimum=0), default=0, help="Seed of the episode.  [default: 0]"
)
@click.option("--out", type=PATH, help="Folder.  [default: RESULTS/videos/SEGMENT]")
@click.option("--trust", is_flag=True, help="Run code of environments that records name.")
@method_option
def video(
    run: Path,
    tasks: tuple[str, ...],
    seed: int,
    out: Path | None,
    trust: bool,
    files: tuple[str, ...],
) -> None:
    """Record videos of a segment's policies on every task learned by then: mp4, gif, stills.

    RUN is a segment's folder (RESULTS/segments/NAME), or a results folder with one run. Needs no
    display: Meta-World is rendered with EGL or OSMesa. mp4 needs the extra cwbench[video].
    """
    from cwbench.sharing.video import find_run, make_videos, tile, write, write_strip
    from cwbench.spec.files import short_path
    from cwbench.store.files import check_output, checked_name

    found, position = find_run(run)
    home = short_path(found.results)
    folder = writable(check_output(home, out or home / "videos" / found.folders[position]))
    own, videos = own_methods(files), []
    for video in make_videos(run, tasks, seed=seed, methods=own, trust=trust):
        videos.append(video)
        name = folder / checked_name(video.task, "task")
        for file in (*write(name, video.frames), write_strip(name, video)):
            click.echo(f"{file}{'' if video.success else '  (no success)'}")
    if len(videos) > 1:
        for file in write(folder / "all", tile(videos)):
            click.echo(file)

"""`cwbench track`, `export`, `push` and `pull`: results for other programs and other people."""

from pathlib import Path

import click

from cwbench.cli.console import show_problems
from cwbench.cli.folders import PATH, existing, writable
from cwbench.cli.options import Number, method_option, own_methods
from cwbench.spec.text import counted


@click.command()
@click.argument("results", default="results", type=PATH)
@click.option(
    "--to", required=True, type=click.Choice(["tensorboard", "wandb", "trackio"]), help="Tracker."
)
@click.option("--project", default="cwbench", show_default=True, help="Name there.")
@click.option("--follow", "following", is_flag=True, help="Keep sending until all runs have ended.")
@click.option(
    "--seconds",
    type=Number(float, minimum=1, maximum=1e6),
    default=60.0,
    help="Time between updates, with --follow.  [default: 60]",
)
def track(results: Path, to: str, project: str, following: bool, seconds: float) -> None:
    """Send success, returns and losses to an experiment tracker.

    What was sent is noted in RESULTS/tracking, so the same command again sends only what is new.
    A run's rows end before a damaged segment, and go on once `cwbench repair` and training have put
    it right. For wandb, WANDB_MODE=offline sends nothing and keeps files to sync later.
    """
    from cwbench.sharing.track import follow
    from cwbench.sharing.track import track as send

    existing(results)
    if following:
        click.echo(f"looking every {seconds:g} s until no run is going on; Ctrl-C ends it")
        sent = follow(results, to, project=project, seconds=seconds)
    else:
        sent = send(results, to, project=project)
    count = 0
    for run, rows in sent:
        click.echo(f"{run.label} on {run.sequence}, seed {run.seed}: {counted(rows, 'row')}")
        count += rows
    click.echo(f"{counted(count, 'row')} sent")


# Format -> why there may be nothing to write.
LACKING = {
    "minari": "no run has stored transitions; recall, perfect-memory and methods of your own with "
    "`keeps_replay` store them, until `cwbench clean` removes them",
    "rliable": "no run has ended",
    "weights": "no run has the weights of a finished task",
}


@click.command()
@click.argument("results", default="results", type=PATH)
@click.option(
    "--to",
    required=True,
    type=click.Choice(["parquet", "minari", "rliable", "weights"]),
    help="Format.",
)
@click.option("--out", type=PATH, help="Folder.  [default: RESULTS/export/FORMAT]")
@click.option("--trust", is_flag=True, help="Run code of environments that records name.")
@method_option
@click.pass_context
def export(
    ctx: click.Context,
    results: Path,
    to: str,
    out: Path | None,
    trust: bool,
    files: tuple[str, ...],
) -> None:
    """Write results for other programs.

    parquet: tables of runs, evaluations and training. rliable: final success rates, method ->
    [runs, tasks]. weights: policies that `cwbench.load_policy` reads, with a card each. minari:
    transitions that methods have kept, for offline learning.

    Exit code 1 if something could not be read and was left out.
    """
    from cwbench.sharing.export import export as write

    if out is not None:
        writable(out)
    written, problems = 0, list[str]()
    own = own_methods(files)
    for file in write(existing(results), to, out, methods=own, trust=trust, problems=problems):
        click.echo(file)
        written += 1
    show_problems(problems)
    if problems:
        ctx.exit(1)
    if not written:
        click.echo(f"nothing to write as {to}: {LACKING[to]}")


@click.command()
@click.argument("results", type=PATH)
@click.argument("target", metavar="hf:USER/NAME|FOLDER")
def push(results: Path, target: str) -> None:
    """Copy records, tables and weights of a results folder to the Hugging Face Hub or a folder.

    A folder must not hold results yet: `cwbench merge` adds to those.
    """
    from cwbench.sharing.hub import push as send

    if not target.startswith("hf:"):
        writable(Path(target))
    click.echo(f"shared at {send(existing(results), target)}")


@click.command()
@click.argument("source", metavar="hf:USER/NAME|FOLDER")
@click.argument("results", type=PATH)
def pull(source: str, results: Path) -> None:
    """Fetch a results folder that someone has pushed; `cwbench report` reads it."""
    from cwbench.sharing.hub import pull as fetch

    fetch(source, writable(results))
    click.echo(f"results are in {results}")

"""Options of every command that trains, and what such a command does with its runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cwbench.cli.console import show_problems
from cwbench.cli.folders import PATH
from cwbench.cli.options import Decorator, click_options
from cwbench.experiment.execution import Execution, Launching
from cwbench.experiment.launching import check_installed, check_launching
from cwbench.experiment.listener import Terminal
from cwbench.experiment.results_folder import check_writable
from cwbench.experiment.session import Paused, Session, open_session
from cwbench.spec.errors import UserError, located
from cwbench.spec.options import take
from cwbench.spec.text import as_command, duration

if TYPE_CHECKING:
    from cwbench.experiment.build import Methods
    from cwbench.planning.estimate import Estimate
    from cwbench.planning.plan import Plan, Run
    from cwbench.store.records import Problem
    from cwbench.store.results import Store

LONG_SECONDS = 86_400  # above this a terminal is asked before anything starts

RESULTS = click.Option(
    ["--results"], default="results", show_default=True, type=PATH,
    help="Results folder.",
)  # fmt: skip
QUIET = click.Option(["--quiet"], is_flag=True, help="Show only problems.")
SESSION = (
    QUIET,
    click.Option(["--live/--no-live"], default=True, help="Keep RESULTS/report/index.html up to "
                 "date.  [default: live]"),
    click.Option(["--dry-run"], is_flag=True, help="Show the plan and stop."),
    click.Option(["--yes"], is_flag=True, help="Do not ask for confirmation (asked on a terminal, "
                 "if it takes more than a day)."),
    click.Option(["--json", "as_json"], is_flag=True, help="With --dry-run: the plan as JSON."),
)  # fmt: skip
EXECUTION = click_options(Execution, group="Execution")
LAUNCHING = click_options(Launching, group="Launcher")


def with_options(options: Sequence[click.Option]) -> Decorator:
    """Add options to a command, after those it has."""

    def add(command: click.Command) -> click.Command:
        command.params += options
        return command

    return add


# Of `cwbench train`, and of commands that plan.
execution_options = with_options([*EXECUTION, QUIET])
retry_options = with_options([*EXECUTION, *SESSION, *LAUNCHING])
training_options = with_options([RESULTS, *EXECUTION, *SESSION, *LAUNCHING])


@dataclass(frozen=True)
class TrainingOptions:
    """How a command was asked to train."""

    results: Path
    execution: Execution
    launching: Launching
    quiet: bool
    live: bool
    dry_run: bool
    yes: bool
    as_json: bool = False

    @staticmethod
    def take(given: dict[str, Any]) -> TrainingOptions:
        """Take these options out of all that were given."""
        names = ("results", "quiet", "live", "dry_run", "yes", "as_json")
        own = {name: given.pop(name) for name in names}
        if own["as_json"] and not own["dry_run"]:
            raise UserError("--json has no effect without --dry-run", "give both")
        check_results(own["results"])
        execution, launching = take(Execution, given), take(Launching, given)
        check_launching(launching)
        if not own["dry_run"]:
            check_installed(launching.launcher)
        return TrainingOptions(**own, execution=execution, launching=launching)

    @property
    def finishes(self) -> bool:
        """Whether results exist when the command ends."""
        return self.launching.waits and not self.dry_run

    @property
    def terminal(self) -> Terminal:
        # With `--launcher print` nothing but commands goes to the output, with `--json` only JSON.
        printing = self.as_json or self.launching.launcher == "print"
        quiet = self.quiet and not self.dry_run
        return Terminal(quiet=quiet, stderr=printing, trains=not self.dry_run)


def check_results(folder: Path) -> None:
    """Raise before torch is imported: for a results folder that cannot be written to."""
    with located(f"results folder {folder}"):
        check_writable(folder)


def command_line() -> str:
    return shlex.join(["cwbench", *sys.argv[1:]])


def execute(
    experiments: Mapping[str, Sequence[Run]],
    methods: Methods,
    training: TrainingOptions,
    *,
    record: bool = True,
    also_record: Callable[[], object] = lambda: None,
    command: str = "",
) -> bool:
    """Plan, say so, train. False if something failed; ends the command if it was interrupted.

    `also_record` is called when nothing can be refused any more. `command` continues what was
    interrupted; if empty, this one does.
    """
    runs = [run for members in experiments.values() for run in members]
    session, plan = planned(runs, methods, training, command)
    damaged = damaged_records(session.store, plan) if record else []  # a retry has shown them
    show_problems(damaged)
    if training.as_json:
        click.echo(json.dumps(plan_record(session, plan), indent=1))
        return True
    needs = None
    asks = sys.stdin.isatty() and not (training.dry_run or training.yes)
    if asks or not training.quiet or training.dry_run:
        needs = present(session, plan, ask=asks)
    if training.dry_run:
        return True
    session.check(plan)
    if record:
        session.record(experiments)
    also_record()
    if not all(problem.denied for problem in damaged):
        repair = f"{as_command('repair', training.results)} sets them aside"
        session.listener.warn(f"records are damaged; {repair}, then this command trains them again")
    if not plan.missing:
        session.listener.say(f"nothing to train: results are in {training.results}")
        return not damaged
    try:
        done = session.carry_out(plan, needs, live=training.live)
        return done and not damaged
    except Paused:
        raise click.exceptions.Exit(1) from None


def planned(
    runs: Sequence[Run], methods: Methods, training: TrainingOptions, command: str = ""
) -> tuple[Session, Plan]:
    """What runs of one protocol need; nothing is written."""
    session = open_session(
        training.results,
        methods,
        [segment for run in runs for segment in run.segments],
        execution=training.execution,
        launching=training.launching,
        listener=training.terminal,
        protocol=runs[0].protocol,
        command=command or command_line(),
    )
    return session, session.plan(runs)


def damaged_records(store: Store, plan: Plan) -> list[Problem]:
    """What cannot be read of segments that are done, which training does not look at again."""
    from cwbench.store.results import read_segments

    problems: list[Problem] = []
    done = [segment.folder for segment in plan.segments if segment.id in plan.done]
    deque(read_segments(store.root, problems, done), maxlen=0)
    return problems


def plan_record(session: Session, plan: Plan) -> dict[str, Any]:
    """A plan and what it needs, for programs."""
    return {
        "runs": [run.record() for run in plan.runs],
        "segments": len(plan.segments),
        "done": len(plan.done),
        "fleets": [[segment.id for segment in fleet] for fleet in plan.fleets],
        "device": session.device.type,
        "workers": session.resources.workers(plan),
        "needs": asdict(session.estimate(plan)),
    }


def present(session: Session, plan: Plan, *, ask: bool) -> Estimate:
    """Say what will be done, and ask if it takes days."""
    needs = session.estimate(plan)
    for line in session.describe(plan, needs):
        session.listener.say(line)
    seconds = needs.seconds or 0.0
    if ask and seconds > LONG_SECONDS:
        click.confirm(f"this takes about {duration(seconds)}; continue?", abort=True)
    return needs

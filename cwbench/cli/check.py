"""`cwbench check`: whether a method keeps the contract that results rely on, and what it costs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cwbench.cli.completers import complete_method
from cwbench.cli.console import json_option
from cwbench.experiment.build import load_method

if TYPE_CHECKING:
    from cwbench.experiment.conformance import Verdict
    from cwbench.experiment.method_cost import MethodCost


@click.command()
@click.argument("method", metavar="METHOD", shell_complete=complete_method)
@json_option
@click.pass_context
def check(ctx: click.Context, method: str, as_json: bool) -> None:
    """Train a method on a toy problem in several ways, compare the results, and show its cost.

    METHOD is a name or path/to/file.py:ClassName. Writes nothing. The exit code is 1 if a
    check fails, and 2 if the class cannot be trained at all. What an error of an earlier check
    stops is not checked.
    """
    load_method(method)
    from cwbench.experiment.conformance import run_checks
    from cwbench.experiment.execution import Execution, set_up_torch
    from cwbench.experiment.method_cost import method_cost

    set_up_torch(Execution(threads=1))
    verdicts = []
    for verdict in run_checks(method):
        verdicts.append(verdict)
        if not as_json:
            _show(verdict)
    good = not any(verdict.problem for verdict in verdicts)
    cost = method_cost(method) if good else None
    if as_json:
        click.echo(json.dumps(_record(verdicts, cost), indent=1))
    elif cost:
        _show_cost(cost)
    ctx.exit(0 if good else 1)


def _show(verdict: "Verdict") -> None:
    word = ("FAILED" if verdict.checked else "not checked") if verdict.problem else "ok"
    click.echo(f"{word:13}{verdict.check}")
    if verdict.problem and verdict.checked:
        click.echo(f"{'':13}{verdict.problem}")


def _show_cost(cost: "MethodCost") -> None:
    click.echo("\nper run, with networks of width 8:")
    for title, value in (
        ("parameters with two tasks", f"{cost.parameters:,}"),
        ("bytes of state after one task", f"{cost.state_bytes:,}"),
        ("bytes that a further task adds", f"{cost.state_growth:,}"),
        ("transitions kept of earlier tasks", cost.replay_rows),
        ("extra updates at a task's end", f"{cost.retraining:,}"),
        ("episodes that choose a head", f"{cost.selection:,}"),
    ):
        click.echo(f"  {title:36}{value:>12}")


def _record(verdicts: Sequence["Verdict"], cost: "MethodCost | None") -> dict[str, object]:
    return {
        "checks": [asdict(verdict) for verdict in verdicts],
        "cost": asdict(cost) if cost else None,
    }

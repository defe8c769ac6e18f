"""`cwbench new-method`: a method of your own to start from, and its test."""

import re
import shlex
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

import click

from cwbench.cli.folders import PATH
from cwbench.spec.errors import UserError

METHOD = '''"""NAME: say in one line what it does.

cwbench check FILE.py:CLASS
cwbench run --method FILE.py:CLASS --seq point3 --protocol demo
"""

from dataclasses import dataclass

from torch import Tensor

from cwbench.learner import Batch, Method, MethodConfig, option, per_run_sum


@dataclass(frozen=True)
class CLASSConfig(MethodConfig):
    # Each field is an option of the command line (--coef) and part of a run's identity.
    # per_run: runs that differ in it train together, so a sweep costs one fleet.
    coef: float = option(1.0, "Strength of the penalty.", minimum=0, per_run=True)


class CLASS(Method[CLASSConfig]):
    """Pulls the actor's shared layers towards where the previous task left them."""

    config_class = CLASSConfig
    state_names = ("anchor",)  # kept in snapshots and for the next task, which has a new object

    anchor: dict[str, Tensor] = {}  # empty during the first task

    # A hook that you leave out does what plain SAC does; docs/methods.md lists all of them.

    def on_task_end(self, position: int) -> None:
        """After a task's last step: ordinary Python."""
        names = self.trainer.trunk_names("actor")
        self.anchor = {name: self.trainer.params[name].detach().clone() for name in names}

    def actor_penalty(self, batch: Batch) -> Tensor:
        """Added to the actor loss in every update: tensor code, one number per run, [R]."""
        # Axis 0 of every tensor is the run: sum with per_run_sum, never over axis 0.
        # Random numbers: self.trainer.streams.normal("name", shape), never torch.randn.
        penalty = super().actor_penalty(batch)  # zeros [R]
        for name, old in self.anchor.items():
            penalty = penalty + per_run_sum((self.trainer.params[name] - old) ** 2)
        return self.per_run(lambda config: config.coef) * penalty
'''
TEST = '''"""The contract of methods holds for CLASS."""

from pathlib import Path

from cwbench.experiment.conformance import check_method


def test_contract() -> None:
    check_method(f"{Path(__file__).parent / 'FILE.py'}:CLASS")
'''


@click.command("new-method")
@click.argument("name")
@click.option("--folder", default=".", show_default=True, type=PATH, help="Folder to write to.")
def new_method(name: str, folder: Path) -> None:
    """Write NAME.py, a small commented method that works, and test_NAME.py."""
    stem = name.replace("-", "_").lower()
    if iskeyword(stem):
        raise UserError(f"{name!r} is a Python keyword", "choose another name")
    if not stem.isidentifier():
        raise UserError(f"{name!r} is not a name for a method", "use letters, digits and hyphens")
    if not folder.is_dir():
        raise UserError(f"--folder {folder}: no such folder")
    files = {folder / f"{stem}.py": METHOD, folder / f"test_{stem}.py": TEST}
    for file in files:
        if file.exists():
            raise UserError(f"{file} exists", "choose another name or --folder")
    if find_spec(stem):
        raise UserError(
            f"{stem} is a Python package, which {stem}.py would hide", "choose another name"
        )
    parts = name.replace("-", "_").split("_")
    class_name = "".join(part[:1].upper() + part[1:] for part in parts)  # MyMethod stays
    words = {"FILE": stem, "CLASS": class_name, "NAME": name}
    for file, text in files.items():
        filled = re.sub("|".join(words), lambda found: words[found[0]], text)
        file.write_text(filled, encoding="utf-8")
        click.echo(file)
    click.echo(f"next: {shlex.join(['cwbench', 'check', f'{folder / stem}.py:{class_name}'])}")

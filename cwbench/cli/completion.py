"""`cwbench completion`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands and options: eval "$(cwbench completion bash)"."""
    from cwbench.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "cwbench", "_CWBENCH_COMPLETE").source())

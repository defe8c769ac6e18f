"""Names that a shell completes: of methods, sequences, protocols and experiments."""

from collections.abc import Callable, Iterable

from click.shell_completion import CompletionItem

from cwbench import sequences
from cwbench.experiment import definition
from cwbench.spec.config import PROTOCOLS

Completer = Callable[[object, object, str], list[str]]


def _completer(known: Callable[[], Iterable[str]]) -> Completer:
    return lambda ctx, param, typed: [name for name in known() if name.startswith(typed)]


def complete_method(ctx: object, param: object, typed: str) -> list[CompletionItem]:
    """Also after a comma; files where no name fits, since a method may be in one."""
    from cwbench.methods import known

    before, comma, last = typed.rpartition(",")
    names = [CompletionItem(before + comma + name) for name in known() if name.startswith(last)]
    return names or [CompletionItem(typed, type="file")]


complete_sequence = _completer(sequences.names)
complete_protocol = _completer(lambda: PROTOCOLS)
complete_experiment = _completer(definition.names)

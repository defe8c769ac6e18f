"""Names that a shell completes: of methods, sequences, protocols and experiments."""

from collections.abc import Callable, Iterable

from click.shell_completion import CompletionItem

from cwbench import sequences
from cwbench.experiment import definition
from cwbench.spec.config import PROTOCOLS

Completer = Callable[[object, object, str], list[CompletionItem]]


def _completer(known: Callable[[], Iterable[str]]) -> Completer:
    return lambda ctx, param, typed: _names_or_files(known(), typed)


def complete_method(ctx: object, param: object, typed: str) -> list[CompletionItem]:
    """Also after a comma."""
    from cwbench.methods import known

    before, comma, _ = typed.rpartition(",")
    return _names_or_files([before + comma + name for name in known()], typed)


def _names_or_files(names: Iterable[str], typed: str) -> list[CompletionItem]:
    """Files where no name fits: everything that is named may be in one."""
    found = [CompletionItem(name) for name in names if name.startswith(typed)]
    return found or [CompletionItem(typed, type="file")]


complete_sequence = _completer(sequences.names)
complete_protocol = _completer(lambda: PROTOCOLS)
complete_experiment = _completer(definition.names)

"""Names that a shell completes: of methods, sequences, protocols and experiments."""

from collections.abc import Callable, Iterable

from cwbench import sequences
from cwbench.experiment import definition
from cwbench.spec.config import PROTOCOLS

Completer = Callable[[object, object, str], list[str]]


def _completer(known: Callable[[], Iterable[str]]) -> Completer:
    return lambda ctx, param, typed: [name for name in known() if name.startswith(typed)]


def _methods() -> Iterable[str]:
    from cwbench.methods import known

    return known()


complete_method = _completer(_methods)
complete_sequence = _completer(sequences.names)
complete_protocol = _completer(lambda: PROTOCOLS)
complete_experiment = _completer(definition.names)

"""The one exception for input that its author can correct."""

import difflib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class UserError(ValueError):
    """Invalid input: one line that names the value, and a hint what to write instead.

    The command line prints it and ends with exit code 2.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return _joined(self.message, self.hint)


class CannotImport(UserError):
    """What a record names cannot be imported: nothing is wrong with the record."""


def _joined(text: str, more: str) -> str:
    """Both on one line. Messages of other packages are often sentences."""
    if not text or not more:
        return text or more
    if text.endswith(("?", "!")):
        word = re.match(r"[a-z]+(?![^\s,;])", more)  # not the name of a file or method
        return f"{text} {more[0].upper() if word else more[0]}{more[1:]}"
    return re.sub(r"(?<=\w)\.$", "", text) + f"; {more}"  # a path may end with a dot


def unknown(what: str, word: str, known: Collection[str], advice: str = "") -> UserError:
    """An unknown name: the closest known one, if any, and advice on where to find all."""
    if match := difflib.get_close_matches(word, list(known), n=1):
        advice = f"did you mean {match[0]!r}? {advice[:1].upper()}{advice[1:]}".rstrip()
    return UserError(f"unknown {what} {word!r}", advice)


@contextmanager
def located(where: str, advice: str = "") -> Iterator[None]:
    """Say where an error raised inside is, and after its own hint what to do."""
    try:
        yield
    except UserError as error:
        hint = _joined(error.hint, advice)
        raise UserError(f"{where}: {error.message}", hint) from None
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{where}: {text}", advice) from None
    except RecursionError:
        raise UserError(f"{where}: nested too deeply", advice) from None

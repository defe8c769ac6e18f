"""Programs and services of others, which may be offline or refuse."""

from collections.abc import Iterator
from contextlib import contextmanager

from cwbench.spec.errors import UserError


@contextmanager
def asking(service: str, hint: str) -> Iterator[None]:
    """Turn what goes wrong there into one line: it is not this program's error."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{service}: {text}", hint) from error

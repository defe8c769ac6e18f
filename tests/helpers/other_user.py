"""Files that belong to another user, who keeps them private."""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def private(path: Path) -> Iterator[None]:
    """As if a file or folder had mode 600 or 700 and another owner.

    Root may read everything, so the refusals are made up.
    """

    def refusing(call: Callable[..., Any], *, itself: bool) -> Callable[..., Any]:
        def refuse(file: Any = ".", *args: Any, **kwargs: Any) -> Any:
            if isinstance(file, str | os.PathLike):
                asked = Path(file)
                if path in asked.parents or (itself and asked == path):
                    raise PermissionError(errno.EACCES, "Permission denied", str(file))
            return call(file, *args, **kwargs)

        return refuse

    with pytest.MonkeyPatch.context() as patch:
        for owner, name, itself in (
            (os, "stat", False),
            (os, "lstat", False),
            (os, "scandir", True),
            (os, "listdir", True),
            (io, "open", True),
            (builtins, "open", True),
        ):
            patch.setattr(owner, name, refusing(getattr(owner, name), itself=itself))
        yield

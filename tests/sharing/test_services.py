"""What goes wrong elsewhere is one line."""

import pytest

from cwbench.sharing.services import asking
from cwbench.spec.errors import UserError


def test_errors_of_others_are_one_line_and_ours_stay() -> None:
    with (
        pytest.raises(UserError, match=r"^hf:me/x: no route to host; log in$"),
        asking("hf:me/x", "log in"),
    ):
        raise ConnectionError("no route\n  to host")
    with (
        pytest.raises(UserError, match=r"^hf:me/x: TimeoutError; log in$"),
        asking("hf:me/x", "log in"),
    ):
        raise TimeoutError
    with pytest.raises(UserError, match=r"^ours$"), asking("hf:me/x", "log in"):
        raise UserError("ours")

"""One line that names the value and says what to write instead."""

import pytest

from cwbench.spec.errors import UserError, located, unknown


def test_the_nearest_name_comes_before_the_advice() -> None:
    near = unknown("table", "cw4", ["cw3"], "these results have: cw3")
    assert str(near) == "unknown table 'cw4'; did you mean 'cw3'? These results have: cw3"
    far = unknown("table", "list", ["cw3"], "these results have: cw3")
    assert str(far) == "unknown table 'list'; these results have: cw3"
    assert str(unknown("task", "pusch", ["push"])) == "unknown task 'pusch'; did you mean 'push'?"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UserError("no name", "give one"), "my.toml: no name; give one; see the docs"),
        (UserError("no name?", "give one."), "my.toml: no name? Give one; see the docs"),
        (
            unknown("task", "pusch", ["push"]),
            "my.toml: unknown task 'pusch'; did you mean 'push'? See the docs",
        ),
        (UserError("no name?", "own.py:Mine"), "my.toml: no name? own.py:Mine; see the docs"),
        (UserError("nothing in ..", ""), "my.toml: nothing in ..; see the docs"),
        (ValueError("bad."), "my.toml: bad; see the docs"),
        (ValueError("bad"), "my.toml: bad; see the docs"),
        (FileNotFoundError(2, "No such file"), "my.toml: No such file; see the docs"),
        (RecursionError(), "my.toml: nested too deeply; see the docs"),
    ],
)
def test_errors_say_where_they_are(error: Exception, text: str) -> None:
    with pytest.raises(UserError) as raised, located("my.toml", "see the docs"):
        raise error
    assert str(raised.value) == text

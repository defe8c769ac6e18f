"""Tables on wide and narrow terminals."""

import pytest

from cwbench.cli.console import show

ROW = ("recall-2-push-0123456789ab", "failed", "50/600", "it's [bold]")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (
            "80",
            [
                ["segment", "state", "steps", "note"],
                ["recall-2-push-0123456789ab", "failed", "50/600", "it's", "[bold]"],
            ],
        ),
        (
            "40",
            [
                ["recall-2-push-0123456789ab"],
                ["state:", "failed"],
                ["steps:", "50/600"],
                ["note:", "it's", "[bold]"],
            ],
        ),
    ],
)
def test_rows_become_paragraphs_where_the_heads_do_not_fit(
    width: str,
    shown: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    show([ROW], "segment", "state", "steps", "note")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == shown


def test_heads_are_never_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for width in range(20, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        show([ROW], "segment", "state", "protocol", "segments")
        first = capsys.readouterr().out.splitlines()[0].split()
        assert first in (["segment", "state", "protocol", "segments"], [ROW[0]])

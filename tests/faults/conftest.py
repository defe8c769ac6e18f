"""The summary table of `make faults`."""

from typing import Any

from faults import TALLY


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not TALLY:
        return
    terminalreporter.write_line(f"\n{'fault':<44}{'injected':>9}{'survived':>9}{'silent':>7}")
    for kind, found in sorted(TALLY.items()):
        numbers = [found[name] for name in ("injected", "survived", "silent")]
        terminalreporter.write_line(f"{kind:<44}{numbers[0]:>9}{numbers[1]:>9}{numbers[2]:>7}")

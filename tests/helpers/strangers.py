"""Commands on files from someone else, which must not run the code that these name."""

from pathlib import Path

import pytest

from cwbench.cli import main

EVIL = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nclass Pull: pass\n"


def evil_file(folder: Path) -> Path:
    """A method file that leaves the file `ran` when it is imported."""
    file = folder / "evil.py"
    file.write_text(EVIL)
    return file


def fails(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    return capsys.readouterr().err

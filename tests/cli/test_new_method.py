"""The method that authors start from."""

from pathlib import Path

import pytest

from cwbench.cli import main


def test_a_new_method_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["new-method", "my-pull", "--folder", str(tmp_path)])
    assert f"next: cwbench check {tmp_path}/my_pull.py:MyPull" in capsys.readouterr().out
    with pytest.raises(SystemExit) as code:
        main(["new-method", "my-pull", "--folder", str(tmp_path)])
    assert code.value.code == 2 and "my_pull.py exists" in capsys.readouterr().err

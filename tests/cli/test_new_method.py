"""The method that authors start from."""

from pathlib import Path

import pytest

from cwbench.cli import main


@pytest.mark.parametrize(("name", "file"), [("my-pull", "my_pull"), ("MyPull", "mypull")])
def test_a_new_method_is_written_once(
    name: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["new-method", name, "--folder", str(tmp_path)])
    assert f"next: cwbench check {tmp_path}/{file}.py:MyPull" in capsys.readouterr().out
    assert "class MyPull(Method[" in (tmp_path / f"{file}.py").read_text()
    with pytest.raises(SystemExit) as code:
        main(["new-method", name, "--folder", str(tmp_path)])
    assert code.value.code == 2 and f"{file}.py exists" in capsys.readouterr().err

"""The method that authors start from."""

from pathlib import Path

import pytest

from cwbench.cli import main


@pytest.mark.parametrize(
    ("name", "file", "class_name"),
    [
        ("my-pull", "my_pull", "MyPull"),
        ("MyPull", "mypull", "MyPull"),
        ("MyNAME", "myname", "MyNAME"),  # a word of the template
        ("FILE-of-CLASS", "file_of_class", "FILEOfCLASS"),
    ],
)
def test_a_new_method_is_written_once(
    name: str, file: str, class_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["new-method", name, "--folder", str(tmp_path)])
    assert f"next: cwbench check {tmp_path}/{file}.py:{class_name}" in capsys.readouterr().out
    assert f"class {class_name}(Method[" in (tmp_path / f"{file}.py").read_text()
    assert (tmp_path / f"{file}.py").read_text().startswith(f'"""{name}: say ')
    with pytest.raises(SystemExit) as code:
        main(["new-method", name, "--folder", str(tmp_path)])
    assert code.value.code == 2 and f"{file}.py exists" in capsys.readouterr().err

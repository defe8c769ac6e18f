"""The names that `import cwbench` offers."""

import pytest

import cwbench


def test_every_public_name_loads() -> None:
    for name in cwbench.__all__:
        assert getattr(cwbench, name) is not None and name in dir(cwbench)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        getattr(cwbench, "trian")  # noqa: B009

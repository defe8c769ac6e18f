"""The cache of slim models: used when good, rebuilt when not, never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cwbench.envs import make
from cwbench.envs.metaworld import models
from cwbench.spec.config import MetaWorldConfig

MAKE_AND_STEP = """
import numpy as np
from cwbench.spec.config import MetaWorldConfig
from cwbench.envs import make

env = make("push", MetaWorldConfig())
env.reset(np.random.default_rng(0))
print(env.step(np.ones(4, np.float32))[0].tobytes().hex())
"""


@pytest.fixture
def xml():
    from metaworld.asset_path_utils import full_V3_path_for

    return Path(full_V3_path_for("sawyer_xyz/sawyer_push_v3.xml"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CWBENCH_CACHE", str(folder))
    monkeypatch.chdir(tmp_path)  # where MuJoCo would leave its log
    return folder


@pytest.fixture
def assets(tmp_path, xml):
    """Meta-World's assets without a single picture."""
    copy = tmp_path / "assets"
    no_pictures = shutil.ignore_patterns("*.png")
    shutil.copytree(xml.parents[1], copy, copy_function=os.symlink, ignore=no_pictures)
    return copy


def first_step():
    env = make("push", MetaWorldConfig())
    env.reset(np.random.default_rng(0))
    return env.step(np.ones(4, np.float32))[0]


def test_second_load_reads_the_file(cache, xml, monkeypatch):
    built = models._to_bytes(models.load(xml))
    monkeypatch.setattr(models, "compile_model", lambda _: pytest.fail("compiled again"))
    assert models._to_bytes(models.load(xml)) == built
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", ["flipped bit", "cut short", "empty"])
def test_damaged_file_is_rebuilt(cache, xml, damage):
    models.load(xml)
    [file] = cache.iterdir()
    good = file.read_bytes()
    middle = len(good) // 2
    flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
    file.write_bytes({"flipped bit": flipped, "cut short": good[:middle], "empty": b""}[damage])
    models.load(xml)
    assert file.read_bytes() == good
    assert not (cache.parent / "MUJOCO_LOG.TXT").exists()


def test_unusable_folder_costs_only_time(tmp_path, monkeypatch):
    expected = first_step()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("CWBENCH_CACHE", str(in_the_way / "cache"))  # read-only even for root
    assert (first_step() == expected).all()


def test_processes_that_start_together_agree(cache):
    processes = [
        subprocess.Popen([sys.executable, "-c", MAKE_AND_STEP], stdout=subprocess.PIPE, cwd=root())
        for _ in range(2)
    ]
    outputs = {process.communicate()[0].decode() for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs == {first_step().tobytes().hex() + "\n"}
    assert [file.suffix for file in cache.iterdir()] == [".mjb"]  # no temporary file left


def root():
    return Path(__file__).parents[3]


def test_key_covers_included_files(assets, xml):
    copy = assets / "sawyer_xyz" / xml.name
    assert models._key(copy) == models._key(xml)
    included = assets / "objects" / "assets" / "xyz_base.xml"
    text = included.read_text()
    included.unlink()
    included.write_text(text + "<!-- changed -->")
    assert models._key(copy) != models._key(xml)


@pytest.mark.parametrize("name", ["sawyer_push_v3.xml", "sawyer_hammer.xml"])
def test_no_picture_is_read(assets, xml, name):
    without = models.compile_model(assets / "sawyer_xyz" / name)
    assert models._to_bytes(without) == models._to_bytes(models.compile_model(xml.parent / name))

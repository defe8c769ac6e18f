"""Scripts say how they are called."""

import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parent.parent / "scripts"


def test_the_comparison_with_stable_baselines_shows_its_usage() -> None:
    script = SCRIPTS / "compare_sb3.py"
    asked, bare = (
        subprocess.run([sys.executable, script, *args], capture_output=True, text=True)
        for args in (["--help"], [])
    )
    usage = script.read_text().split('"""')[1].strip()
    assert (asked.returncode, asked.stdout.strip()) == (0, usage)
    assert (bare.returncode, bare.stderr.strip()) == (1, usage)

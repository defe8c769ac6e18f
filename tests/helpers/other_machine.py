"""What a process of another machine leaves in a results folder."""

import json
import os
import platform
from pathlib import Path

from cwbench.store.results import SegmentFolder


def claim_elsewhere(folder: SegmentFolder) -> Path:
    """A claim by a process of another machine."""
    owner = {
        "token": "other",
        "host": platform.node(),
        "pid": os.getpid(),
        "pid_namespace": "elsewhere",
    }
    file = folder.path / "claim.json"
    file.write_text(json.dumps(owner))
    return file

"""The page of a results folder, rewritten while it fills."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FIRST_SECONDS, EVERY_SECONDS = 10.0, 60.0
REST = 9  # times as long as a write took: a tenth of a core at most, whatever the folder holds
CODE = "import sys; from pathlib import Path; from cwbench.reports.build import write_page; "
CODE += "write_page(Path(sys.argv[1]), Path(sys.argv[2]))"


class LivePage:
    """Rewrites `<results>/report/index.html` regularly, in a separate process.

    Training never waits for it: the longer a write takes, the later is the next one.
    """

    def __init__(self, results: Path, warn: Callable[[str], None]) -> None:
        self.results, self.folder, self.warn = results, results / "report", warn
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> "LivePage":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._write()

    def _loop(self) -> None:
        pause = FIRST_SECONDS
        while not self._end.wait(pause):
            start = time.monotonic()
            self._write()
            pause = max(EVERY_SECONDS, REST * (time.monotonic() - start))

    def _write(self) -> None:
        command = [sys.executable, "-c", CODE, str(self.results), str(self.folder)]
        # Ctrl-C reaches the whole process group; a page that is being written is finished.
        made = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["no message"])[-1]
            self.warn(f"the page could not be written: {last}")

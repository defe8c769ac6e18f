"""The page of a results folder, rewritten while it fills."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

FIRST_SECONDS, EVERY_SECONDS = 10.0, 60.0
CODE = "import sys; from pathlib import Path; from cwbench.reports.build import write_page; "
CODE += "write_page(Path(sys.argv[1]), Path(sys.argv[2]))"


class LivePage:
    """Rewrites `<results>/report/index.html` regularly, in a separate process.

    Training never waits for it: a slow write only delays the next one.
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
            self._write()
            pause = EVERY_SECONDS

    def _write(self) -> None:
        command = [sys.executable, "-c", CODE, str(self.results), str(self.folder)]
        # Ctrl-C reaches the whole process group; a page that is being written is finished.
        made = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["no message"])[-1]
            self.warn(f"the page could not be written: {last}")

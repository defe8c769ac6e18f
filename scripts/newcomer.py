"""A newcomer's first hour, timed: a fresh clone, a fresh environment, the README's own commands.

`make newcomer` runs it. Commands come from README.md; only what would take days on a laptop is made
smaller, by the options that `SMALLER` adds.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALLER = {"cwbench run --method recall --seq cw3-1": "--protocol smoke --seeds 0 --yes --no-live"}
OPEN_PAGE = """
from pathlib import Path
from playwright.sync_api import expect, sync_playwright
with sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path={chromium!r}, args=["--no-sandbox"])
    page = browser.new_page()
    page.goto(Path("results/report/index.html").resolve().as_uri())
    expect(page.locator("h1").first).to_be_visible(timeout=60_000)
    print(page.title())
"""


def blocks(text: str, language: str = "") -> list[str]:
    """The code blocks of a Markdown text in a language; without one, those that name none."""
    parts = re.split(r"^```(.*)\n", text, flags=re.M)[1:]  # fence, content, fence, content, ...
    pairs = list(zip(parts[::2], parts[1::2], strict=True))[::2]  # without the closing fences
    return [content for fence, content in pairs if fence == language]


def shell_commands(readme: str) -> list[str]:
    """Lines of the README's shell blocks without their comments."""
    lines = [line.split("#")[0].strip() for block in blocks(readme) for line in block.splitlines()]
    return [line for line in lines if line.startswith(("make ", "cwbench "))]


def smaller(command: str) -> str:
    added = [more for start, more in SMALLER.items() if command.startswith(start)]
    return " ".join([re.sub(r"--seeds \S+", "", command) if added else command, *added])


def steps(clone: Path) -> list[tuple[str, str]]:
    """Title and shell command of each step, in a newcomer's order."""
    commands = shell_commands((clone / "README.md").read_text(encoding="utf-8"))
    first = [line for line in commands if line.startswith("make demo")]
    rest = [line for line in commands if line.startswith(("cwbench run", "cwbench report"))]
    activate = ". .venv/bin/activate && "
    found = [(line, line) for line in first]
    found += [(line, activate + smaller(line)) for line in rest]
    # Before the tutorials, which add runs: a folder with one run needs no segment's name.
    found.append(("a video", f"{activate}cwbench video results"))
    for page in sorted((clone / "docs" / "tutorials").glob("*.md")):
        script = clone / f"{page.stem}.py"
        script.write_text("\n".join(blocks(page.read_text(encoding="utf-8"), "python")))
        found.append((f"tutorial {page.stem}", f"{activate}python {script.name}"))
    opened = clone / "open_page.py"
    opened.write_text(OPEN_PAGE.format(chromium=_browser()))
    found.append(("the page in a browser", f"{activate}python {opened.name}"))
    return found


def _browser() -> str | None:
    """A browser of this machine; None is Playwright's own."""
    found = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, found), None)


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        clone = Path(temporary) / "cwbench"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        begun = time.monotonic()
        for title, command in steps(clone):
            start = time.monotonic()
            done = subprocess.run(
                ["bash", "-c", command], cwd=clone, capture_output=True, text=True
            )
            minutes = (time.monotonic() - start) / 60
            ended = "ok" if done.returncode == 0 else "FAILED"
            print(f"{minutes:5.1f} min  {ended:6}  {title}", flush=True)
            if done.returncode:
                failed += 1
                print((done.stdout + done.stderr)[-2000:])
        print(f"{(time.monotonic() - begun) / 60:5.1f} min  in all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Pictures of what readers see, to be looked at, and a search for pages that are cut at the right.

    python tools/screenshots.py SITE FOLDER

SITE is what ``mkdocs build`` has made. Needs chromium on PATH. The exit status is 1 if the content of a page is wider than
a window of one of the WIDTHS.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

WIDTHS = (360, 800, 1400)
"""Of a telephone, half a screen, a screen."""
PICTURES = (
    ("front", "index.html", 1400, 1500, False),
    ("front-dark", "index.html", 1400, 1500, True),
    ("front-narrow", "index.html", 500, 2400, False),
    ("api", "api/simulation.html", 1400, 2600, False),
    ("method", "trigger-sequence.html", 1400, 2200, False),
    ("method-narrow", "trigger-sequence.html", 500, 2200, False),
    ("method-dark", "algorithms.html", 1400, 2200, True),
    ("notebook", "notebook.html", 1400, 4600, False),
)
"""Name, page, width and height in pixels, dark. Chromium has no window narrower than 500."""
SEARCHED = "PythonComponent"
SECONDS = 4
"""That the search takes to read its index."""
COMMAND = "simulate two-mass.ssp --event-clock predictive --plot two-mass.png"
COLUMNS = 100
"""Of the terminal in which it is run."""

_CHROMIUM = (
    "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars"
)
_CURSOR = re.compile(r"\x1b\[[?\d;]*[A-HJKhl]")
"""Sequences that move or hide the cursor, of a progress bar."""
_VIRTUAL_TIME = "--virtual-time-budget=60000"
_OFFLINE = "--disable-background-networking --disable-component-update --disable-sync"
_MEASURE = """<body><script>
const pages = %s, widths = %s;
const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
async function measure() {
  const found = [];
  for (const width of widths) for (const page of pages) {
    const frame = document.createElement("iframe");
    frame.style = `width: ${width}px; height: 900px`;
    document.body.append(frame);
    await new Promise(done => { frame.onload = done; frame.src = page; });
    const inside = frame.contentDocument;
    for (const part of [inside.documentElement, ...inside.querySelectorAll(".md-content, .md-content img")])
      if (part.getBoundingClientRect().right > width + 1 || part.scrollWidth > part.clientWidth + 1)
        found.push(`${page} at ${width} px: ${part.tagName} ${part.className}`);
    frame.remove();
  }
  document.body.innerHTML = "<pre>MEASURED\\n" + found.join("\\n") + "\\n</pre>";
}
measure();
</script></body>"""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site while it is served on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log, and an address that answers late: until then a page counts as not loaded."""

    def do_GET(self) -> None:
        """A file, or nothing after SECONDS."""
        if self.path == "/late":
            time.sleep(SECONDS)
            self.send_error(404)
        else:
            super().do_GET()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


def chromium(address: str, *options: str) -> str:
    """Open a page; what the browser prints."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [*_CHROMIUM.split(), *_OFFLINE.split(), f"--user-data-dir={profile}"]
        command += [*options, address]
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=120, check=True
        ).stdout


def photograph(
    address: str,
    file: Path,
    width: int,
    height: int,
    *,
    dark: bool = False,
    real_time: bool = False,
) -> None:
    """Write a picture of a page."""
    options = ["--blink-settings=preferredColorScheme=0"] if dark else []
    options += [] if real_time else [_VIRTUAL_TIME]
    chromium(address, f"--window-size={width},{height}", f"--screenshot={file}", *options)


def photograph_search(site: Path, file: Path) -> None:
    """Write a picture of what the search finds. It works in a thread of its own, for which only real time passes."""
    frame = f'<iframe src="index.html?q={SEARCHED}" style="border: 0; width: 1400px; height: 900px"></iframe>'
    page = site / "search.html"
    page.write_text(
        f'<body style="margin: 0">{frame}<img src="/late">', encoding="utf-8", newline="\n"
    )
    try:
        with served(site) as address:
            photograph(f"{address}/search.html", file, 1400, 900, real_time=True)
    finally:
        page.unlink()


def cut_pages(site: Path) -> list[str]:
    """Pages whose content is wider than a window."""
    pages = [p.relative_to(site).as_posix() for p in sorted(site.rglob("*.html"))]
    pages.remove("404.html")
    measure = site / "measure.html"
    measure.write_text(_MEASURE % (pages, list(WIDTHS)), encoding="utf-8", newline="\n")
    try:
        with served(site) as address:
            printed = chromium(f"{address}/measure.html", "--dump-dom", _VIRTUAL_TIME)
    finally:
        measure.unlink()
    found = re.search(r"MEASURED\n(.*?)</pre>", printed, re.S)
    if found is None:
        raise RuntimeError("The widths of the pages were not measured.")
    return found[1].split("\n")[:-1]


def terminal(command: str, folder: Path) -> str:
    """What a command shows in a terminal of COLUMNS columns, with its colours."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=slave,
        stderr=slave,
        stdin=slave,
    ):
        os.close(slave)
        shown = bytearray()
        with suppress(OSError):  # nobody has the other end any more
            while data := os.read(master, 4096):
                shown.extend(data)
    os.close(master)
    return shown.decode(errors="replace").replace("\r\n", "\n")


def photograph_terminal(text: str, file: Path) -> None:
    """Write a picture of what a terminal shows."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    last = _CURSOR.sub("", "\n".join(line.rpartition("\r")[2] for line in text.split("\n")))
    console.print(Text.from_ansi(last))
    with TemporaryDirectory() as folder:
        page = Path(folder) / "terminal.html"
        page.write_text(console.export_html(), encoding="utf-8", newline="\n")
        photograph(page.as_uri(), file, 1000, 40 + 19 * (last.count("\n") + 2))


def main() -> int:
    """Write all pictures, and print the pages that are cut."""
    site, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    if shutil.which("chromium") is None:
        print("chromium is not installed: no pictures.")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with served(site) as address:
        for name, page, width, height, dark in PICTURES:
            photograph(f"{address}/{page}", folder / f"{name}.png", width, height, dark=dark)
    fmimaster = f"{sys.executable} -m fmimaster"
    photograph_search(site, folder / "search.png")
    with TemporaryDirectory() as work:
        commands = f"{fmimaster} demo files > /dev/null && {fmimaster} {COMMAND}"
        photograph_terminal(terminal(commands, Path(work)), folder / "terminal.png")
    cut = cut_pages(site)
    print("\n".join(cut) or "no page is cut")
    return 1 if cut else 0


if __name__ == "__main__":
    sys.exit(main())

"""tools/links.py finds links that lead nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "links.py"


def test_links_and_anchors_that_do_not_exist_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>', encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<a href="other.html#here">good</a> <a href="other.html#there">bad</a> <a href="gone.html">bad</a>'
        '<a href="https://fmi-standard.org">not tried</a> <script src="https://example.org/a.js"></script>',
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(TOOL), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert [line for line in sorted(done.stdout.splitlines()) if "index.html" in line] == [
        "index.html fetches https://example.org/a.js",
        "index.html links to gone.html",
        "index.html links to other.html#there",
    ]

"""Writes the Python code of the README, the pages and the notebooks into files, for a type checker.

    python tools/page_examples.py FOLDER

Each page gets a folder. A file of the page's name in it has all ``python`` blocks of the page, at the lines where the page
has them. A Python block with ``title="name.py"`` is a file of that name beside it.
A notebook is a page too, with the code of its cells.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))

_BLOCK = re.compile(
    r"^```python(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```$", re.M | re.S
)


def files(page: Path) -> Iterator[tuple[str, str]]:
    """Names and contents of the files of a page."""
    content = page.read_text(encoding="utf-8")
    lines = [""] * content.count("\n")
    for found in _BLOCK.finditer(content):
        if found["title"]:
            yield found["title"], found["text"]
            continue
        first = content.count("\n", 0, found.start("text"))
        text = found["text"].splitlines()
        lines[first : first + len(text)] = text
    if any(lines):
        # a name of its own: type checkers take files as modules
        yield f"page_{page.stem.lower().replace('-', '_')}.py", "\n".join(lines) + "\n"


def cells(notebook: Path) -> Iterator[tuple[str, str]]:
    """Name and content of the file of a notebook: all its code."""
    document = json.loads(notebook.read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    yield f"{notebook.stem}.py", "\n\n".join(code) + "\n"


def main() -> None:
    """Write the files of all pages."""
    target = Path(sys.argv[1])
    for page in [*PAGES, *NOTEBOOKS]:
        folder = target / page.relative_to(ROOT).with_suffix("")
        for name, text in cells(page) if page in NOTEBOOKS else files(page):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

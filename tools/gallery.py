#!/usr/bin/env python
"""Draw the figures of docs/gallery.md, by running each example of docs/examples that has one.

python tools/gallery.py [NAME ...]
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
FIGURES = EXAMPLES.parent / "figures" / "gallery"


def draw(example: Path, folder: Path) -> None:
    """Run an example in a folder; the same example gives the same bytes."""
    from matplotlib import rc_context

    before = Path.cwd()
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # with the salt: no date and no random names
    os.chdir(folder)
    try:
        with rc_context({"svg.hashsalt": "fmimaster"}):
            runpy.run_path(str(example), run_name="__main__")
    finally:
        os.chdir(before)


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for figure in [f"{name}.svg" for name in sys.argv[1:]] or os.listdir(FIGURES):
        draw(EXAMPLES / figure.replace(".svg", ".py"), FIGURES)

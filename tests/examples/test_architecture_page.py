"""The files that docs/architecture.md names are there. The import rule: tests/unit/test_imports.py."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fmimaster"


def test_every_file_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"^```text\nfmimaster/\n(.*?)^```", page, re.M | re.S)
    assert tree is not None
    folder = PACKAGE
    for line in tree[1].splitlines():
        names, _, _ = line.strip().partition("   ")
        if line.startswith("  ") and not line.startswith("   "):
            folder = PACKAGE
        for name in names.split(", "):
            if not re.fullmatch(r"[\w*]+(\.py|/)", name):
                continue
            assert list(folder.glob(name.rstrip("/"))), f"{folder.name}/{name}"
        if re.match(r"  \w+/ ", line):
            folder = PACKAGE / line.strip().partition("/")[0]

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
    folders = [PACKAGE]  # what stands deeper lies in the folder above it
    for line in tree[1].splitlines():
        names, _, _ = line.strip().partition("   ")
        depth = max(1, (len(line) - len(line.lstrip())) // 2)
        del folders[depth:]
        for name in names.split(", "):
            if re.fullmatch(r"[\w*]+(\.py|/)", name):
                assert list(folders[-1].glob(name.rstrip("/"))), f"{folders[-1].name}/{name}"
        if folder := re.match(r"(\w+)/ ", line.strip()):
            folders.append(folders[-1] / folder[1])

"""What docs/architecture.md says of the package is so: the import rule, and the files that it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fmimaster"

MAY_IMPORT = {
    "errors": set[str](),
    "system": {"errors"},
    "plan": {"errors", "system"},
    "program": {"errors", "system", "plan"},
    "control": {"errors", "system", "plan", "program"},
    "algorithms": {"errors", "system", "plan", "program", "control"},
    "results": {"errors"},
    "fmu": {"errors", "system", "results"},
    "kernel": set[str](),
    "run": {"errors", "system", "plan", "program", "control", "fmu", "kernel"},
}
"""Folder, or module of the package itself → what it may import. All that is not listed stands above these."""


def imports(node: ast.AST) -> Iterator[str]:
    """Modules that are imported when the code runs, also late; not those for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            yield child.module
            yield from (f"{child.module}.{name.name}" for name in child.names)
        elif isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        yield from imports(child)


def parts_imported(file: Path) -> set[str]:
    """Folders and modules of the package that a file imports."""
    names = imports(ast.parse(file.read_text(encoding="utf-8")))
    return {name.split(".")[1] for name in names if name.startswith("fmimaster.")}


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_point_one_way(part: str) -> None:
    folder = PACKAGE / part
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    for file in files:
        back = {
            p
            for p in parts_imported(file)
            if (PACKAGE / p).exists() or (PACKAGE / f"{p}.py").exists()
        }
        assert back <= MAY_IMPORT[part] | {part}, f"{file.relative_to(ROOT)} imports {back}"


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

"""The test files that touch a module, nearest first.

    python tools/tests_of.py fmimaster/steps/pid.py
    python tools/tests_of.py fmimaster.steps.pid

First the files that have the module's name; if other modules have it too, only those that use this one. Then those that
import the module or a public name from it, then those that name one of its classes or functions, then those that import a
module that imports it. Each line has the reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import house

from fmimaster.base.public_names import places

TESTS = house.ROOT / "tests"
REASONS = ("has its name", "imports it", "names what it defines", "imports a module that uses it")


class Touch(NamedTuple):
    """How a test file touches a module; the smallest is the nearest."""

    reason: int
    """Place in REASONS."""
    is_whole: bool
    """Whether it runs whole simulations: unit tests come first."""
    share: float
    """Minus the number of names in each line that the module defines, and minus the share of its users in the imports."""
    path: Path


def tests_of(module: Path) -> list[Touch]:
    """The test files of a module, nearest first."""
    own, every = house.dotted(module), house.modules()
    users = {house.dotted(m) for m in every if own in house.imported(m)}
    named = re.compile(rf"\b(?:{'|'.join(_defined(house.tree_of(module))) or '$^'})\b")
    names = _names_of_tests(module)
    is_common = sum(m.stem.rstrip("s") == module.stem.rstrip("s") for m in every) > 1
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        text, used = path.read_text(encoding="utf-8"), _modules_of(path)
        n = len(named.findall(text))
        has_name = path.stem in names and (not is_common or own in used or n > 0)
        holds = (has_name, own in used, n > 0, not users.isdisjoint(used))
        if any(holds):
            share = n / text.count("\n") + len(users & used) / len(used | {own})
            is_whole = path.parent.name != "unit"
            found.append(Touch(holds.index(True), is_whole, -share, path))
    return sorted(found)


def _names_of_tests(module: Path) -> set[str]:
    """``steps/pid.py`` → test_pid, test_steps_pid; ``system/builder.py`` → test_builder, ...: singular or plural."""
    names = {module.stem, f"{module.parent.name}_{module.stem}"}
    return {f"test_{name}" for name in names} | {f"test_{name.rstrip('s')}" for name in names}


def _defined(tree: ast.Module) -> Iterator[str]:
    """Public classes and functions of a module whose names are no usual words."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            is_word = node.name.islower() and "_" not in node.name
            if not (is_word or node.name.startswith("_")):
                yield node.name


def _modules_of(path: Path) -> set[str]:
    """Modules of the package that a test file imports, also by public names."""
    found = set()
    for name in house.imported_names(path)[False]:
        room, _, last = name.rpartition(".")
        is_room = house.module_of(name) == room and (house.ROOT / room.replace(".", "/")).is_dir()
        module = places(room).get(last) if is_room else house.module_of(name)
        found |= {module} - {None}
    return found


def module_at(given: str) -> Path:
    """The file of a module that is given by its path, or by its dotted name."""
    path = Path(given) if given.endswith(".py") else Path(*given.split(".")).with_suffix(".py")
    return (house.ROOT / path).resolve(strict=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for touch in tests_of(module_at(sys.argv[1])):
        print(f"{touch.path.relative_to(house.ROOT).as_posix()}  {REASONS[touch.reason]}")

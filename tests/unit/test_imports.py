"""The import rule of the architecture, section 2: no arrow points back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fmimaster

PACKAGE = Path(fmimaster.__file__).parent

# part → the parts that it may import besides itself
ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "accuracy": set(),
    "base": set(),
    "checkpoint": set(),
    "demos": set(),
    "kernel": set(),
    "named": set(),
    "optimization": set(),
    "stability": set(),
    "apart": {"base"},
    "record": {"base"},
    "system": {"base"},
    "instants": {"record", "system"},
    "results": {"base", "record"},
    "sequences": {"base", "system"},
    "plan": {"base", "sequences", "system"},
    "inputs": {"base", "plan", "system"},
    "program": {"base", "inputs", "instants", "plan", "sequences", "system"},
    "fmu": {"apart", "base", "inputs", "program", "results", "system"},
    "loops": {"base", "plan", "program", "system"},
    "steps": {"base", "instants", "plan", "program", "record", "system"},
    "cards": {"base", "fmu", "system"},
    "events": {"base", "inputs", "instants", "plan", "program", "record", "steps", "system"},
    "algorithms": {
        "base",
        "events",
        "inputs",
        "instants",
        "loops",
        "plan",
        "program",
        "sequences",
        "steps",
        "system",
    },
    "run": {
        "apart",
        "base",
        "events",
        "fmu",
        "inputs",
        "instants",
        "kernel",
        "plan",
        "program",
        "record",
        "steps",
        "system",
    },
    "configure": {
        "algorithms",
        "base",
        "cards",
        "events",
        "fmu",
        "inputs",
        "loops",
        "plan",
        "results",
        "run",
        "sequences",
        "steps",
        "system",
    },
    "prepare": {
        "algorithms",
        "base",
        "cards",
        "configure",
        "fmu",
        "inputs",
        "instants",
        "plan",
        "program",
        "run",
        "steps",
        "system",
    },
    "pages": {"base", "configure", "plan", "prepare", "program", "sequences", "steps", "system"},
    "session": {
        "apart",
        "base",
        "configure",
        "events",
        "fmu",
        "instants",
        "plan",
        "prepare",
        "program",
        "record",
        "results",
        "run",
        "steps",
        "system",
    },
    "front": {
        "algorithms",
        "base",
        "configure",
        "fmu",
        "pages",
        "plan",
        "prepare",
        "results",
        "session",
        "steps",
        "system",
    },
    "studies": {
        "algorithms",
        "apart",
        "base",
        "cards",
        "configure",
        "events",
        "fmu",
        "front",
        "inputs",
        "instants",
        "plan",
        "prepare",
        "program",
        "record",
        "results",
        "run",
        "sequences",
        "session",
        "steps",
        "system",
    },
    "conformance": {
        "apart",
        "base",
        "cards",
        "configure",
        "fmu",
        "front",
        "instants",
        "results",
        "steps",
        "studies",
        "system",
    },
    "api": {
        "algorithms",
        "base",
        "cards",
        "conformance",
        "events",
        "fmu",
        "front",
        "inputs",
        "loops",
        "plan",
        "program",
        "record",
        "results",
        "run",
        "sequences",
        "session",
        "steps",
        "studies",
        "system",
    },
    "commands": {
        "algorithms",
        "apart",
        "base",
        "cards",
        "configure",
        "conformance",
        "fmu",
        "front",
        "inputs",
        "instants",
        "loops",
        "pages",
        "plan",
        "record",
        "results",
        "run",
        "sequences",
        "session",
        "steps",
        "studies",
        "system",
    },
    "__main__": {"commands"},
}

MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if "reference" not in path.relative_to(PACKAGE).parts
)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of fmimaster that are imported anywhere, but not for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "fmimaster":
                # a public name comes from the package itself
                parts = {path.stem for path in PACKAGE.iterdir()}
                names = (alias.name for alias in node.names)
                yield from (f"fmimaster.{n if n in parts else '__init__'}" for n in names)
            else:
                yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from imports(node)


def parts_imported(path: Path) -> set[str]:
    found = [name.split(".") for name in imports(ast.parse(path.read_text()))]
    return {name[1] for name in found if name[0] == "fmimaster" and len(name) > 1}


def test_every_part_has_its_place_in_the_rule() -> None:
    assert {part_of(path) for path in MODULES} <= set(ALLOWED)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_import_points_back(path: Path) -> None:
    part = part_of(path)
    assert parts_imported(path) <= ALLOWED[part] | {part}


def test_the_rule_itself_has_no_circle() -> None:
    done: set[str] = set()
    waiting = dict(ALLOWED)
    while waiting:
        ready = {part for part, below in waiting.items() if below <= done}
        assert ready, f"a circle among {sorted(waiting)}"
        done |= ready
        waiting = {part: below for part, below in waiting.items() if part not in ready}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even for type checkers: who reads one module need not read back."""
    modules = {f"fmimaster.{_dotted(path)}": path for path in MODULES if path.stem != "__init__"}
    waiting = {
        name: {m for m in every_import(ast.parse(path.read_text())) if m in modules} - {name}
        for name, path in modules.items()
    }
    while waiting:
        ready = {name for name, below in waiting.items() if not below & waiting.keys()}
        assert ready, f"a circle among {sorted(waiting)}"
        waiting = {name: below for name, below in waiting.items() if name not in ready}


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def every_import(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported anywhere, also for type checkers only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_below_the_command_line_imports_it() -> None:
    above = {"cli", "commands", "__main__"}
    below = [path for path in MODULES if part_of(path) not in above]
    assert [path for path in below if parts_imported(path) & above] == []


def test_only_fmu_and_kernel_know_fmpy() -> None:
    knows = {
        part_of(path)
        for path in MODULES
        if any(name.partition(".")[0] == "fmpy" for name in imports(ast.parse(path.read_text())))
    }
    # validation runs the checks of fmpy, building FMUs needs its headers
    assert knows <= {"fmu", "validation"}


def test_an_import_in_a_function_is_found() -> None:
    tree = ast.parse("def f():\n    from fmimaster.run import stepper\n")
    assert list(imports(tree)) == ["fmimaster.run"]


def test_an_import_for_type_checkers_is_none() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from fmimaster.results import results\n")
    assert list(imports(tree)) == []

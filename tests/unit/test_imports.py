"""The import rule of the architecture, section 2: no arrow points back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fmimaster

PACKAGE = Path(fmimaster.__file__).parent

# part → the parts that it may import besides itself. A top-level module is a part of its own.
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    "visible": set(),
    "text": {"visible"},
    "garbage": set(),
    "errors": {"visible"},
    "given_path": {"errors"},
    "free_memory": set(),
    "files": {"errors", "free_memory"},
    "own_folder": set(),
    "optional": {"errors"},
    "attributes": {"errors"},
    "typed_arguments": {"errors"},
    "causes": set(),
    "step_series": {"causes", "garbage"},
    "repeated_steps": {"causes", "step_series"},
    "checkpoint": {"errors", "files", "system"},  # archives
    "apart": {"errors", "free_memory", "text"},
    "reference_files": {"errors"},
    "results": {
        "errors",
        "given_path",
        "files",
        "causes",
        "step_series",
        "visible",
        "text",
        "kernel",
        "optional",
        "attributes",
    },  # numbers as text in C
    "system": {"errors", "files", "typed_arguments", "given_path", "text"},
    "plan": {"errors", "typed_arguments", "system", "text"},
    "program": {"errors", "typed_arguments", "system", "plan"},
    "control": {"errors", "typed_arguments", "causes", "system", "plan", "program"},
    "algorithms": {"errors", "typed_arguments", "causes", "system", "plan", "program", "control"},
    "fmu": {
        "errors",
        "apart",  # calls are noted in the process of a run
        "typed_arguments",
        "garbage",
        "files",
        "own_folder",
        "visible",
        "checkpoint",  # states of components in Python as bytes
        "system",
        "program",  # polynomials of inputs
        "results",
    },  # results: a table is read as results are
    "cards": {"errors", "files", "apart", "given_path", "system", "fmu", "text", "version"},
    "kernel": set(),
    "run": {
        "errors",
        "visible",
        "apart",
        "causes",
        "step_series",
        "garbage",
        "system",
        "plan",
        "program",
        "control",
        "fmu",
        "kernel",
        "text",
    },
    "input_values": {"errors", "system"},
    "input_signals": {"errors", "given_path", "system", "plan", "fmu", "results", "input_values"},
    "named": {"errors", "control", "algorithms", "program", "plan", "fmu"},
    "requirements": {"errors", "system", "plan", "control", "algorithms"},
}
ALLOWED["settings"] = set(ALLOWED) - {"requirements"}
ALLOWED["accuracy"] = {
    "errors",
    "plan",
    "system",
    "control",
    "algorithms",
    "program",
    "results",
    "settings",
}
ALLOWED["isolation"] = {"errors", "system", "fmu", "run", "settings"}
ALLOWED["structure_settings"] = {"settings"}
ALLOWED["preparation"] = set(ALLOWED)
ALLOWED["provenance"] = set(ALLOWED)
ALLOWED["pages"] = set(ALLOWED)
ALLOWED["structures"] = set(ALLOWED) - {"pages"}
ALLOWED["session"] = set(ALLOWED) - {"pages"}
BELOW_SIMULATION = set(ALLOWED)
ALLOWED["simulation"] = BELOW_SIMULATION
ALLOWED["validation"] = BELOW_SIMULATION
ALLOWED["resumption"] = BELOW_SIMULATION | {"simulation"}
# what stands above the front door uses what it takes and returns; it executes nothing and knows no FMI version
PUBLIC = BELOW_SIMULATION - {"kernel"} | {"simulation", "validation", "resumption"}
ALLOWED["optimization"] = PUBLIC
ALLOWED["stability"] = PUBLIC
PUBLIC = PUBLIC | {"optimization", "stability"}
ALLOWED["conformance"] = PUBLIC
PUBLIC = PUBLIC | {"conformance"}
ALLOWED["api"] = PUBLIC
ALLOWED["__init__"] = PUBLIC | {"api"}
ALLOWED["sweep"] = PUBLIC | {"__init__"}
ALLOWED["demos"] = PUBLIC | {"__init__"}
ALLOWED["commands"] = PUBLIC | {"__init__", "demos"}
ALLOWED["cli"] = PUBLIC | {"__init__", "commands"}
ALLOWED["__main__"] = {"cli"}

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

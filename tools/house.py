"""The house: its rooms, read from the imports of the package.

    python tools/house.py tree [FOLDER]   each module with the first line of its docstring
    python tools/house.py draw            docs/figures/house.svg: rooms on floors, with arrows to what they import
    python tools/house.py count           lines, modules, rooms, floors, arrows, longest chain of imports that are executed

A room is a folder of ``fmimaster/``, or of ``fmimaster/studies/``. An arrow is an import from one room in another one, also
inside of functions. Imports that only type checkers read are no arrows; the import test also looks for circles with them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "fmimaster"
DRAWING = ROOT / "docs" / "figures" / "house.svg"
LARGE = "studies"
"""A folder whose subfolders are rooms."""


def modules() -> list[Path]:
    """All modules of the package, without what is built into it."""
    built = PACKAGE / "reference"
    return sorted(p for p in PACKAGE.rglob("*.py") if built not in p.parents)


def dotted(path: Path) -> str:
    """The name by which a module is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of a module of the package, by its dotted name; a module at the top is a room of its own."""
    _, *parts = module.split(".")
    if not parts:
        return "__init__"
    return "/".join(parts[:2]) if parts[0] == LARGE and len(parts) > 1 else parts[0]


def imports(tree: ast.AST, for_checkers: bool = False) -> Iterator[str]:
    """Names that a module imports anywhere, absolute; those for type checkers only if asked for."""
    for node in ast.iter_child_nodes(tree):
        if not for_checkers and isinstance(node, ast.If) and _is_for_checkers(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from imports(node, for_checkers)


def _is_for_checkers(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module; those of all modules are a million objects, so none is kept."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_names(path: Path) -> Mapping[bool, frozenset[str]]:
    """What :func:`imports` finds in a module, without those for type checkers and with them."""
    tree = tree_of(path)
    return {with_those: frozenset(imports(tree, with_those)) for with_those in (False, True)}


@cache
def _names() -> frozenset[str]:
    return frozenset(dotted(path) for path in modules())


def module_of(name: str) -> str | None:
    """The module of the package from which a name comes; None if it comes from elsewhere."""
    while name and name not in _names():
        name = name.rpartition(".")[0]
    return name or None


@cache
def imported(path: Path, for_checkers: bool = False) -> frozenset[str]:
    """Modules of the package that a module imports, by their dotted names."""
    found = {m for name in imported_names(path)[for_checkers] if (m := module_of(name))}
    return frozenset(found - {dotted(path)})


@cache
def arrows() -> Mapping[str, frozenset[str]]:
    """Room → the rooms that it imports."""
    found: dict[str, set[str]] = {}
    for path in modules():
        room = room_of(dotted(path))
        found.setdefault(room, set()).update(room_of(m) for m in imported(path))
    return {room: frozenset(below - {room}) for room, below in found.items() if room != LARGE}


def floors(below: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """The floor of each room: one above the highest that it imports.

    Raises
    ------
    ValueError
        If rooms, or modules, import each other in a circle.
    """
    found: dict[str, int] = {}
    waiting = {room: set(needs) for room, needs in below.items()}
    while waiting:
        ready = {room for room, needs in waiting.items() if needs <= found.keys()}
        if not ready:
            raise ValueError(f"a circle among {sorted(_in_circles(waiting))}")
        for room in sorted(ready):
            found[room] = 1 + max((found[n] for n in waiting.pop(room)), default=-1)
    return found


def _in_circles(waiting: Mapping[str, set[str]]) -> set[str]:
    """Those that wait, without those that only wait for a circle."""
    left = set(waiting)
    while unneeded := left.difference(*(waiting[m] & left for m in left)):
        left -= unneeded
    return left


def needed(below: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """The arrows that follow from no others: those from a room to a room that none of its other rooms imports."""

    @cache
    def all_below(room: str) -> frozenset[str]:
        return below[room].union(*(all_below(n) for n in below[room]))

    return {
        room: {n for n in needs if not any(n in all_below(m) for m in needs)}
        for room, needs in below.items()
    }


def purpose(path: Path) -> str:
    """The first line of a module's docstring, without its full stop."""
    text = ast.get_docstring(tree_of(path)) or ""
    return text.partition("\n")[0].rstrip(".")


def tree(folder: Path) -> Iterator[str]:
    """The folder with all modules in it, one line each."""
    depth = len(folder.relative_to(ROOT).parts)
    for path in sorted(
        folder.rglob("*.py"), key=lambda p: (p.parent, p.name != "__init__.py", p.name)
    ):
        if "reference" in path.relative_to(PACKAGE).parts[:1]:
            continue
        indent = "  " * (len(path.relative_to(ROOT).parts) - depth)
        if path.name == "__init__.py":
            yield f"{indent[2:]}{path.parent.name + '/':<{34 - len(indent)}}{purpose(path)}"
        else:
            yield f"{indent}{path.name:<{32 - len(indent)}}{purpose(path)}"


def count() -> Iterator[str]:
    """Figures of the package, one line each."""
    files = modules()
    below = {dotted(p): imported(p) for p in files if p.name != "__init__.py"}
    chains = floors({m: needs & below.keys() for m, needs in below.items()})
    rooms = arrows()
    yield f"lines            {sum(len(p.read_text(encoding='utf-8').splitlines()) for p in files)}"
    yield f"modules          {len(files)}"
    yield f"rooms            {len(rooms)}"
    yield f"floors           {max(floors(rooms).values()) + 1}"
    yield f"arrows           {sum(map(len, rooms.values()))}"
    yield f"longest chain    {max(chains.values()) + 1}"


WIDTH, HEIGHT, GAP, FLOOR, MARGIN = 144, 34, 24, 72, 16
"""Of a room, between rooms, from floor to floor, and around the house, in px."""


def drawing() -> str:
    """Rooms on floors as SVG, with the arrows that follow from no others."""
    rooms = {room: below for room, below in arrows().items() if not room.startswith("_")}
    level = floors({room: below & rooms.keys() for room, below in rooms.items()})
    rows = [[r for r in sorted(rooms) if level[r] == f] for f in range(max(level.values()) + 1)]
    most = max(map(len, rows))
    wide = most * (WIDTH + GAP) - GAP + 2 * MARGIN
    high = len(rows) * FLOOR - (FLOOR - HEIGHT) + 2 * MARGIN
    place = {}
    for floor, row in enumerate(rows):
        left = (wide - len(row) * (WIDTH + GAP) + GAP) / 2
        for k, room in enumerate(row):
            place[room] = (left + k * (WIDTH + GAP), high - MARGIN - HEIGHT - floor * FLOOR)
    return "\n".join(_svg(rooms, place, wide, high)) + "\n"


def _svg(
    rooms: Mapping[str, frozenset[str]],
    place: Mapping[str, tuple[float, float]],
    wide: float,
    high: float,
) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" font-family="sans-serif">'
    yield "<title>The rooms of fmimaster: each imports only from rooms below it</title>"
    yield f'<rect width="{wide:g}" height="{high:g}" fill="#ffffff"/>'
    for room, below in sorted(needed({r: b & rooms.keys() for r, b in rooms.items()}).items()):
        x, y = place[room]
        for other in sorted(below):
            u, v = place[other]
            begin, end, middle = y + HEIGHT, v, (y + HEIGHT + v) / 2
            a, b = x + WIDTH / 2, u + WIDTH / 2
            yield (
                f'<path d="M{a:g} {begin:g}C{a:g} {middle:g} {b:g} {middle:g} {b:g} {end:g}" fill="none" '
                'stroke="#9aa7b5"/>'
            )
    for room, (x, y) in sorted(place.items()):
        yield f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3f8" stroke="#4a6785"/>'
        yield (
            f'<text x="{x + WIDTH / 2:g}" y="{y + 22:g}" font-size="13" text-anchor="middle">{escape(room)}</text>'
        )
    yield "</svg>"


def main(arguments: list[str]) -> int:
    """Run a command; returns the exit status."""
    match arguments:
        case ["tree"]:
            print("\n".join(tree(PACKAGE)))
        case ["tree", folder]:
            print("\n".join(tree((PACKAGE / folder).resolve())))
        case ["draw"]:
            DRAWING.write_text(drawing(), encoding="utf-8", newline="\n")
        case ["count"]:
            print("\n".join(count()))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

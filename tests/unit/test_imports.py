"""The import rule of the architecture: a room imports only from rooms below it, and no modules import in a circle."""

from __future__ import annotations

import ast
import re
from collections import Counter

import house  # type: ignore[import-not-found]
import pytest

from fmimaster.base.public_names import at_place

BELOW = [
    "base",
    "numerics",
    "kernel",
    "record",
    "apart",
    "system",
    "results",
    "instants",
    "sequences",
    "plan",
    "inputs",
    "program",
    "steps",
    "events",
    "loops",
    "algorithms",
    "fmu",
    "cards",
    "run",
    "configure",
    "prepare",
    "pages",
    "session",
    "export",
    "front",
    "studies/probing",
    "studies/optimization",
    "studies/sweeps",
    "studies/stability",
    "studies/demos",
    "conformance",
    "__init__",
    "commands",
    "__main__",
]
"""All rooms: each may import only from those left of it. What is loose at the top is a room of its own."""

ONLY = {
    "numerics": set[str](),
    "kernel": set[str](),
    "base": set[str](),
    "record": {"base"},
    "results": {"base", "record", "kernel"},  # numbers as text in C
    "sequences": {"base", "system"},  # combinatorics of names and weights
    "apart": {"base"},
    "__init__": {"base"},  # it imports a public name when it is used
}
"""Rooms that shall not know more, although it lies left of them."""

LOOSE = {"__init__", "__main__"}
"""Modules at the top of the package."""


def test_every_room_has_its_place_in_the_rule() -> None:
    assert set(house.arrows()) <= set(BELOW)


def test_only_two_modules_lie_loose_at_the_top() -> None:
    assert {path.stem for path in house.modules() if path.parent == house.PACKAGE} == LOOSE


@pytest.mark.parametrize("room", BELOW)
def test_no_import_points_up(room: str) -> None:
    allowed = set(BELOW[: BELOW.index(room)]) & ONLY.get(room, set(BELOW))
    assert house.arrows()[room] <= allowed


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even for type checkers: a reader of one module need not read back."""
    below = {
        house.dotted(path): house.imported(path, for_checkers=True)
        for path in house.modules()
        if path.name != "__init__.py"
    }
    house.floors({module: needs & below.keys() for module, needs in below.items()})


def test_nothing_below_the_command_line_imports_it() -> None:
    above = {room for room, below in house.arrows().items() if "commands" in below}
    assert above == {"__main__"}


def test_only_fmu_and_validation_know_fmpy() -> None:
    knows = {
        house.dotted(path)
        for path in house.modules()
        if any(name.partition(".")[0] == "fmpy" for name in house.imported_names(path)[False])
    }
    # validation runs the checks of fmpy
    assert {name for name in knows if house.room_of(name) != "fmu"} <= {
        "fmimaster.front.validation"
    }


def test_the_drawing_of_the_house_is_the_one_of_today() -> None:
    assert house.DRAWING.read_text(encoding="utf-8") == house.drawing(), (
        "run: python tools/house.py draw"
    )


def test_a_circle_is_found() -> None:
    with pytest.raises(ValueError, match=re.escape("a circle among ['a', 'b']")):
        house.floors({"a": {"b"}, "b": {"a"}, "c": set(), "d": {"a"}})


def test_an_arrow_that_follows_from_others_is_not_drawn() -> None:
    below = {"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset[str]()}
    assert house.needed(below) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_an_import_in_a_function_is_found() -> None:
    tree = ast.parse("def f():\n    from fmimaster.run import stepper\n")
    assert list(house.imports(tree)) == ["fmimaster.run.stepper"]


def test_an_import_for_type_checkers_is_found_only_if_asked_for() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from fmimaster.results import results\n")
    assert list(house.imports(tree)) == []
    assert list(house.imports(tree, for_checkers=True)) == ["fmimaster.results.results"]


def test_every_place_that_is_named_in_a_text_exists() -> None:
    """``"module:name"`` below fmimaster, of what is imported when a setting names it."""
    form = re.compile(r"[a-z_\d]+(\.[a-z_\d]+)+:\w+(\.\w+)*")
    places = {
        node.value
        for path in house.modules()
        if form.search(path.read_text(encoding="utf-8"))  # few: trees of all take seconds
        for node in ast.walk(house.tree_of(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and form.fullmatch(node.value)
    }
    assert len(places) > 30
    for place in places:
        at_place(place)


def test_public_classes_have_different_names() -> None:
    names = [
        name
        for path in house.modules()
        for name in re.findall(r"^class ([^\W_]\w*)", path.read_text(encoding="utf-8"), re.M)
    ]
    assert [name for name, number in Counter(names).items() if number > 1] == []

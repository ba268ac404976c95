"""Public names: where they are, that a room costs nothing until one is used, and the message for an old name."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import house  # type: ignore[import-not-found]
import pytest

import fmimaster
from fmimaster.algorithms import AlongLine, AtEnd, GaussSeidel, Jacobi
from fmimaster.base.errors import OptionError
from fmimaster.base.public_names import MOVED, places, rooms
from fmimaster.inputs import LINEAR

PACKAGE = Path(fmimaster.__file__).parent
ROOMS = list(rooms("fmimaster"))
NAMES = [
    (room, name, module)
    for room in ROOMS
    for name, module in places(room).items()
    if module != room  # no room
]
ELSEWHERE = {name: room for room, name, _ in reversed(NAMES)}


def test_the_rooms_that_users_know() -> None:
    assert [room.removeprefix("fmimaster.") for room in ROOMS] == [
        "fmimaster",
        "algorithms",
        "cards",
        "conformance",
        "events",
        "fmu",
        "front",
        "inputs",
        "loops",
        "results",
        "run",
        "sequences",
        "steps",
        "studies",
        "studies.optimization",
        "studies.sweeps",
        "system",
    ]


def test_few_names_are_at_the_top() -> None:
    top = {name for room, name, _ in NAMES if room == "fmimaster" and not name.endswith("Error")}
    assert top == {
        "AccuracyWarning",
        "Interrupted",
        "Progress",
        "PythonComponent",
        "Results",
        "Run",
        "Simulation",
        "SystemBuilder",
        "__version__",
        "probe",
        "read_system",
        "reference_path",
        "resume",
        "simulate",
        "sweep",
        "validate",
    }


@pytest.mark.parametrize(("room", "name", "module"), NAMES)
def test_a_name_is_that_of_its_module(room: str, name: str, module: str) -> None:
    assert getattr(import_module(room), name) is getattr(import_module(module), name)
    assert name in dir(import_module(room))


@pytest.mark.parametrize("room", ROOMS)
def test_type_checkers_take_each_name_as_public(room: str) -> None:
    """Only ``import X as X`` is public for them; what they do not see is no name for them, also if it is misspelt."""
    path = PACKAGE.joinpath(*room.split(".")[1:], "__init__.py")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    (block,) = (line for line in body if isinstance(line, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    assert [ast.unparse(line) for line in block.orelse] == [
        "__getattr__, __dir__ = public_names(__name__)"
    ]
    names = [name for line in block.body if isinstance(line, ast.ImportFrom) for name in line.names]
    assert len(block.body) == len(names) == len(places(room))
    assert all(name.asname == name.name for name in names)


def modules_after(code: str) -> set[str]:
    """The modules that are imported after a program has run."""
    code += "\nimport json, sys; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


def test_a_room_imports_nothing_before_a_name_is_used() -> None:
    modules = modules_after("\n".join(f"import {room}" for room in ROOMS))
    ours = {name for name in modules if name.partition(".")[0] == "fmimaster"}
    assert ours == {*ROOMS, "fmimaster.base", "fmimaster.base.public_names"}
    assert modules & {"ast", "numpy", "lxml", "scipy"} == set()


def test_a_name_imports_no_other_name_of_its_room() -> None:
    modules = modules_after("from fmimaster.steps import FixedStep")
    assert "fmimaster.steps.step_rule" in modules
    assert modules & {"fmimaster.steps.pid", "fmimaster.steps.multi_rate"} == set()


def test_a_star_imports_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from fmimaster.inputs import *", names)
    assert {name for name in names if not name.startswith("_")} == set(places("fmimaster.inputs"))


def test_a_room_is_an_attribute_of_the_package() -> None:
    code = "import fmimaster; print(fmimaster.studies.optimization.SequenceSearch.__name__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "SequenceSearch\n"


@pytest.mark.parametrize("name", sorted({*ELSEWHERE} - places("fmimaster").keys()))
def test_a_name_of_a_room_is_told_at_the_top(name: str) -> None:
    room = ELSEWHERE[name]
    place = f"'{name}' is in {room}: from {room} import {name}"
    with pytest.raises(ImportError, match=f"^fmimaster has no name '{name}'. {place}"):
        getattr(fmimaster, name)
    with pytest.raises(ImportError, match=place):
        exec(f"from fmimaster import {name}")


@pytest.mark.parametrize(
    ("old", "new", "room"),
    [
        ("END", "AtEnd", "algorithms"),
        ("MID", "AtMiddle", "algorithms"),
        ("HELD", "Corrected", "algorithms"),
        ("Held", "Corrected", "algorithms"),
        ("Linear", "AlongLine", "algorithms"),
        ("SUBSEQUENCE", "Subsequence", "algorithms"),
        ("LINE", "LINEAR", "inputs"),
    ],
)
def test_a_new_name_is_told(old: str, new: str, room: str) -> None:
    with pytest.raises(ImportError) as error:
        exec(f"from fmimaster import {old}")
    assert str(error.value) == (
        f"fmimaster has no name '{old}'. '{old}' is now '{new}', which is in fmimaster.{room}: "
        f"from fmimaster.{room} import {new}."
    )


def test_the_name_that_meant_a_mode_tells_both() -> None:
    with pytest.raises(ImportError, match=r"import LINEAR, .* mode .* is now AlongLine\(\)\.$"):
        exec("from fmimaster import LINEAR")


@pytest.mark.parametrize("rooms", MOVED)
def test_the_rooms_of_an_old_module_are_told(rooms: str) -> None:
    for room in rooms.replace(" and", ",").split(", "):
        assert find_spec(f"fmimaster.{room}") is not None
    for name in MOVED[rooms]:
        assert find_spec(f"fmimaster.{name}") is None
        with pytest.raises(ImportError, match=f"fmimaster.{name} is now in {rooms} of fmimaster.$"):
            exec(f"from fmimaster import {name}")


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"^module 'fmimaster' has no attribute 'simulat'$"):
        getattr(fmimaster, "simulat")  # noqa: B009 - mypy knows that there is none
    with pytest.raises(ImportError, match="cannot import name 'Pid' from"):
        exec("from fmimaster.steps import Pid")


def test_the_package_imports_names_from_their_modules() -> None:
    """A room reads its list of names when one is used, which is for users."""
    found = [
        f"{path}: {name}"
        for path in house.modules()
        if path.name != "__init__.py"
        for name in house.imported_names(path)[True]
        for room, _, last in [name.rpartition(".")]
        if room in ROOMS and last in places(room)
    ]
    assert found == []


def test_a_mode_is_no_polynomial_and_the_other_way_round() -> None:
    mode, polynomial = AlongLine(), LINEAR
    with pytest.raises(OptionError, match=r"^Jacobi: inputs=AlongLine\(.*expected a Polynomial\.$"):
        Jacobi(mode)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^GaussSeidel: inputs=AtEnd\(\), expected a Polynomial"):
        GaussSeidel(AtEnd())  # type: ignore[arg-type]
    with pytest.raises(
        OptionError, match=r"^GaussSeidel: mode=Polynomial.*, expected an InputMode\.$"
    ):
        GaussSeidel(mode=polynomial)  # type: ignore[arg-type]


def test_no_public_name_is_also_a_module_of_its_room() -> None:
    """Importing the module would replace the name by the module."""
    both = {
        f"{room}.{name}"
        for room in rooms("fmimaster")
        for name, module in places(room).items()
        if module == f"{room}.{name}"
    }
    assert both == set()

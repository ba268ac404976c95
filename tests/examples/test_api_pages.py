"""docs/api: every public name is there once, and its docstring says what it takes and returns."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from fmimaster.base.public_names import places, rooms


def public(place: str) -> object:
    """The object of this public name, with its room."""
    room, _, name = place.rpartition(".")
    return getattr(import_module(room), name)


# a name that the top offers too, or an earlier room, is on a page once
PLACES = {
    name: f"{room}.{name}"
    for room in reversed([*rooms("fmimaster")])
    for name, module in places(room).items()
    if module != room and not name.startswith("_")
}
PAGES = sorted((Path(__file__).parents[2] / "docs" / "api").glob("*.md"))
FUNCTIONS = [p for p in PLACES.values() if inspect.isfunction(public(p)) and "simulate" not in p]
CLASSES = [place for place in PLACES.values() if inspect.isclass(public(place))]
USED = ("Simulation", "Run", "Results", "SystemBuilder", "Pair", "SequenceSearch")
"""Classes whose methods are called by users; the methods of all others are called by the package."""


def test_every_public_name_is_on_one_page() -> None:
    listed = Counter(
        name
        for page in PAGES
        for name in re.findall(r"^::: (fmimaster[\w.]*)$", page.read_text(encoding="utf-8"), re.M)
    )
    more = ["fmimaster.configure.settings.Settings", "fmimaster.pages.plan.PlanPage"]
    assert listed == Counter([*PLACES.values(), *more])


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_described(name: str) -> None:
    assert (public(name).__doc__ or "").strip()


def described(documented: object, names: list[str]) -> list[str]:
    """Those names that are an entry of a section of the docstring, or the name of an attribute with a docstring."""
    text = inspect.getdoc(documented) or ""
    entries = re.findall(r"^(\w+(?:, \w+)*)(?: :.*)?$", text, re.M)
    return [name for name in names if any(name in entry.split(", ") for entry in entries)]


def methods() -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [(n, public(n)) for n in FUNCTIONS]
    for owner in USED:
        used = public(PLACES[owner])
        assert isinstance(used, type)
        for cls in used.__mro__:
            for name, member in vars(cls).items():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function) and not name.startswith("_") and cls is not Mapping:
                    found.append((f"{owner}.{name}", function))
    return found


@pytest.mark.parametrize(("name", "function"), methods(), ids=[name for name, _ in methods()])
def test_a_function_says_what_it_takes_and_returns(name: str, function: object) -> None:
    assert callable(function)
    signature = inspect.signature(function)
    taken = [p for p in signature.parameters if p not in ("self", "cls")]
    assert described(function, taken) == taken, name
    if signature.return_annotation not in ("None", inspect.Signature.empty):
        assert "Returns\n" in (inspect.getdoc(function) or ""), name


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_raised_exception_has_a_reason(page: Path) -> None:
    """An exception without a text after it would be an empty line of the page."""
    for name in re.findall(r"^::: (fmimaster[\w.]*)$", page.read_text(encoding="utf-8"), re.M):
        documented = public(name)
        members = vars(documented).values() if inspect.isclass(documented) else ()
        for one in (documented, *members):
            text = inspect.getdoc(one) or ""
            _, _, raises = text.partition("Raises\n------\n")
            for line, following in pairwise([*raises.splitlines(), ""]):
                if re.fullmatch(r"[A-Z]\w+(, [A-Z]\w+)*", line) and not following.startswith("--"):
                    assert following.startswith("    "), f"{name}: {line}"

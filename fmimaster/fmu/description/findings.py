"""Findings about a model description: problems, because of which it is refused, and notes about ignored parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from math import isfinite
from typing import TypeVar

from fmimaster.base.errors import FileError, ModelError
from fmimaster.system.notes import Notes, there_are_more
from fmimaster.system.xml import Element, local_name, location, parse_text, shown, value_of

_MOST_PROBLEMS = 20

E = TypeVar("E", bound=Enum)
S = TypeVar("S")
T = TypeVar("T")


class Findings:
    """Collects problems and notes, each with file and line.

    Many FMUs that run well break a rule. Therefore only errors that prevent a correct run are problems; all others are
    notes, and the attribute is treated as missing.
    """

    def __init__(self) -> None:
        self._notes = Notes()
        self._problems: list[str] = []
        self.count = 0
        """Number of notes so far."""

    def note(self, element: Element, what: str, entry: str = "") -> None:
        """Note an ignored part; notes of one kind become one line."""
        self.count += 1
        self._notes.add(what, entry, location(element))

    def collect(self, error: ModelError | FileError) -> None:
        """Keep a problem, so that those of other elements are found too; see :meth:`refuse`."""
        self._problems += error.problems if isinstance(error, ModelError) else [str(error)]

    def of_each(self, read: Callable[[S], T], elements: Iterable[S]) -> list[T]:
        """What is read from each element; see :meth:`refuse`."""
        found = []
        for element in elements:
            try:
                found.append(read(element))
            except (ModelError, FileError) as error:
                self.collect(error)
        self.refuse()
        return found

    def refuse(self) -> None:
        """Raise if a problem has been collected.

        Raises
        ------
        ModelError
            With the first problems, and the number of the others.
        """
        more = len(self._problems) - _MOST_PROBLEMS
        if more > 0:
            self._problems[_MOST_PROBLEMS:] = [there_are_more(more, "problem")]
        if self._problems:
            raise ModelError(*self._problems)

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each kind."""
        return self._notes.lines()

    def number(
        self,
        element: Element,
        name: str,
        *,
        source: Element | None = None,
        valid: Callable[[float], bool] = isfinite,
        expected: str = "a finite number",
    ) -> float | None:
        """A number that can be ignored; None if it is missing, or not valid (with a note).

        Parameters
        ----------
        source
            Element that has the attribute, if it differs from the element that the message names.
        """
        source = element if source is None else source
        text = source.get(name)
        if text is None:
            return None
        with suppress(FileError):
            number = parse_text(source, name, float, text)
            if valid(number):
                return number
        self.note(element, f"{name} is not {expected} and is ignored", quoted(element, text))
        return None

    def one_of(self, element: Element, name: str, kind: type[E]) -> E | None:
        """Value of an attribute that must be a member of an enumeration; None if it is missing. An empty attribute is
        treated as missing, with a note.

        Raises
        ------
        ModelError
            If it is not known.
        """
        text = element.get(name)
        if text is None:
            return None
        member: E | None = kind._value2member_map_.get(text)  # type: ignore[assignment]
        if member is not None:
            return member
        if text:
            expected = ", ".join(str(member.value) for member in kind)
            what = f"{name} of {labelled(element)} is {shown(text)}"
            raise problem(element, f"{what}, expected one of {expected}.")
        self.note(element, f"{name} is empty and is treated as missing", shown(element.get("name")))
        return None

    def truth(self, element: Element, name: str, *, otherwise: bool = False) -> bool:
        """Whether an attribute is true; the default if it is missing, or neither true nor false (with a note)."""
        text = element.get(name)
        if text not in (None, "true", "false", "1", "0"):
            counts = "true" if otherwise else "false"
            self.note(
                element, f"{name} is neither true nor false and is treated as {counts}", shown(text)
            )
            return otherwise
        return otherwise if text is None else text in ("true", "1")


def problem(element: Element, text: str) -> ModelError:
    """An error about an element, with file and line."""
    return ModelError(f"{location(element)}: {text}")


def whole_number(element: Element, name: str, least: int, most: int) -> int:
    """Value of an attribute that is required and must be in a range."""
    if (text := element.get(name)) is None:
        raise problem(element, f"{name} of {labelled(element)} is missing.")
    number = value_of(element, name, int, least)
    if not least <= number <= most:
        raise problem(
            element,
            f"{name} of {labelled(element)} is {shown(text)}, expected a whole number from {least} to {most}.",
        )
    return number


def labelled(element: Element) -> str:
    """An element in words: ``Float64 'x'``."""
    name = element.get("name")
    return local_name(element) + (f" {shown(name)}" if name else "")


def quoted(element: Element, text: str) -> str:
    """Name of an element with the value of an attribute."""
    name = element.get("name")
    return f"{shown(name)} ({shown(text)})" if name else shown(text)

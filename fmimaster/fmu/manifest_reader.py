"""Reading a manifest with the model at hand: names, roles of variables, spelling. All errors are collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fmimaster.errors import did_you_mean
from fmimaster.fmu.manifest import Manifest
from fmimaster.system.model import Causality, DataType, Model, Variability, Variable
from fmimaster.system.xml import Element, local_name, location, text_of, value_of


@dataclass(frozen=True, slots=True)
class Role:
    """What a variable must be to be named at one place of a manifest."""

    words: str
    """``"a Float64 output"``."""
    types: frozenset[DataType]
    causalities: frozenset[Causality]
    continuous: bool = False
    scalar: bool = True

    def fits(self, variable: Variable) -> bool:
        """Whether a variable has this role."""
        return (
            variable.type in self.types
            and variable.causality in self.causalities
            and (not self.continuous or variable.variability is Variability.CONTINUOUS)
            and (not self.scalar or not variable.dimensions)
        )


class ManifestReader:
    """What readers of manifests have in common; each layered standard derives its own.

    Attributes
    ----------
    problems, notes : list of str
        What breaks a rule, and what is only unusual, each with file and line.
    """

    attributes: ClassVar[Mapping[str, set[str]]] = {}
    """Element → its attributes; each layered standard has its own."""
    known_version: ClassVar[tuple[int, int]] = (0, 1)
    """Latest version that is known; what a later one adds is ignored, with a note."""

    def __init__(self, manifest: Manifest, model: Model) -> None:
        self.manifest = manifest
        self.model = model
        self.problems: list[str] = []
        self.notes: list[str] = []

    def wrong(self, element: Element, text: str) -> None:
        """Something breaks a rule."""
        self.problems.append(f"{location(element)}: {text}.")

    def number(self, element: Element, attribute: str) -> int:
        """A whole number that must be there."""
        text_of(element, attribute)
        return value_of(element, attribute, int, 0)

    def variable(self, element: Element, attribute: str, role: Role, what: str) -> str:
        """Name of a variable that must be there and have a role.

        Parameters
        ----------
        what : str
            The place that names it, for messages: ``"Indicator of event 'collision'"``.
        """
        name = text_of(element, attribute)
        self.check_role(element, name, role, f"{what}: {attribute}")
        return name

    def optional(self, element: Element, attribute: str, role: Role, what: str) -> str | None:
        """Name of a variable that need not be there; None if the attribute is missing."""
        if element.get(attribute) is None:
            return None
        return self.variable(element, attribute, role, what)

    def check_role(self, element: Element, name: str, role: Role, what: str) -> None:
        """Whether the FMU has a variable, and in this role."""
        variable = self.model.variable(name)
        if variable is None:
            fitting = [v.name for v in self.model.variables if role.fits(v)]
            every = (v.name for v in self.model.variables)
            near = did_you_mean(name, fitting) or did_you_mean(name, every)
            self.wrong(
                element,
                f"{what}='{name}' is no variable of the FMU.{near} Expected {role.words}; correct the name",
            )
        elif not role.fits(variable):
            self.wrong(
                element,
                f"{what}='{name}' is {_kind(variable)}. Expected {role.words}; name another variable, or export the "
                "FMU with one",
            )

    def check_spelling(self, element: Element, known: Iterable[str]) -> None:
        """Whether an element is one of those known here, and its attributes are known."""
        name, expected = local_name(element), list(known)
        if name not in expected:
            near = did_you_mean(name, expected)
            self._unknown(
                element, f"element {name} is not known.{near} Expected {', '.join(expected)}"
            )
            return
        expected = sorted(self.attributes[name])
        for attribute in element.attrib:
            if not attribute.startswith("{") and attribute not in expected:
                near = did_you_mean(attribute, expected)
                self._unknown(
                    element,
                    f"attribute '{attribute}' of {name} is not known.{near} Expected {', '.join(expected)}",
                )

    def _unknown(self, element: Element, text: str) -> None:
        if self.manifest.version > self.known_version:
            self.notes.append(f"{location(element)}: {text}; it is left aside")
        else:
            self.wrong(element, text)


def _kind(variable: Variable) -> str:
    array = " array" if variable.dimensions else ""
    text = f"{variable.variability.value} {variable.type.value}{array} {variable.causality.value}"
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"

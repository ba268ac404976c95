"""Rules of FMI that the files of an FMU break: found with the schemas of FMI, by fmpy, and by faster versions of some
of fmpy's checks.

Many FMUs that run well break a rule, so a broken rule does not prevent a simulation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fmpy
from fmpy.model_description import ModelDescription, ModelVariable, Unknown, read_model_description
from fmpy.validation import validate_model_description
from lxml import etree  # type: ignore[import-untyped,unused-ignore]

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import read_whole
from fmimaster.base.text import listed
from fmimaster.fmu.description.terminals import FILE as TERMINALS
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.system.xml import Element, child, parse_xml

_MAIN = "modelDescription.xml"
_SCHEMAS = {
    "2": {_MAIN: "fmi2/fmi2ModelDescription.xsd"},
    "3": {
        _MAIN: "fmi3/fmi3ModelDescription.xsd",
        "sources/buildDescription.xml": "fmi3/fmi3BuildDescription.xsd",
        TERMINALS: "fmi3/fmi3TerminalsAndIcons.xsd",
    },
}
"""Major version of FMI → file of the FMU → its schema among those of fmpy."""


_MOST_CHILDREN = 2000
"""Most elements of a list that are checked against a schema: for each finding, libxml2 counts all elements before
it."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that an FMU breaks."""

    file: str
    what: str
    is_common: bool = False
    """Whether many correct FMUs break it: a simulation does not depend on it."""


def broken_rules(fmu: UnpackedFmu, root: Element) -> Iterator[BrokenRule]:
    """Rules that a readable model description and its associated files break.

    Parameters
    ----------
    root
        The parsed model description. Only the first elements of its long lists remain.
    """
    has_clock_types = child(root, "TypeDefinitions", "ClockType") is not None
    yield from _by_schemas(fmu, root)
    del root  # fmpy takes as much memory again
    try:
        description = _read_by_fmpy(fmu, has_clock_types)
        problems = validate_model_description(description)
    except Exception as error:  # fmpy can raise any exception for an invalid model description
        yield BrokenRule(_MAIN, f"fmpy cannot read it: {error}")
        return
    for problem in problems:
        yield BrokenRule(_MAIN, problem, any(words in problem for words in _COMMON))
    for check in _CHECKS:
        for problem in check(description):
            yield BrokenRule(_MAIN, problem, is_common=check in _COMMON_CHECKS)


def _read_by_fmpy(fmu: UnpackedFmu, has_clock_types: bool) -> ModelDescription:
    """The model description as fmpy reads it. fmpy knows no types of clocks, and refuses clocks that have one."""
    with TemporaryDirectory() as folder:
        path = fmu.folder / _MAIN
        if has_clock_types:
            root: Any = _root(fmu, _MAIN)
            for clock in root.iterfind("ModelVariables/Clock[@declaredType]"):
                del clock.attrib["declaredType"]
            path = Path(folder, _MAIN)
            path.write_bytes(etree.tostring(root))
        # by this name, fmpy reads no other file
        return read_model_description(str(path), validate=False)


def _by_schemas(fmu: UnpackedFmu, root: Element) -> Iterator[BrokenRule]:
    version = (root.get("fmiVersion") or "")[:1]
    for file, schema in _SCHEMAS.get(version, {}).items():
        if not (fmu.folder / file).exists():
            continue
        try:
            yield from _by_schema(root if file == _MAIN else _root(fmu, file), file, schema)
        except FileError as error:
            if file != TERMINALS:  # else it is a problem of the terminals
                yield BrokenRule(file, str(error))


def _root(fmu: UnpackedFmu, file: str) -> Element:
    return parse_xml(read_whole(fmu.folder / file), f"{fmu.where}/{file}")


def _by_schema(root: Any, file: str, schema: str) -> Iterator[BrokenRule]:
    """Violations of a schema in a file; only the first elements of long lists are checked."""
    xsd: Any = etree.XMLSchema(file=str(Path(fmpy.__file__).parent / "schema" / schema))
    for element in root:
        if (n := len(element)) > _MOST_CHILDREN:
            del element[_MOST_CHILDREN:]
            tag = etree.QName(element).localname
            what = f"only the first {_MOST_CHILDREN} of {n} elements in {tag} are checked against the schema"
            yield BrokenRule(file, what, is_common=True)
    if not xsd.validate(root):
        last = None
        for entry in xsd.error_log:
            about = (entry.path, entry.message.partition(": ")[0])
            if about != last:  # otherwise it reports the same error twice
                what = f"line {entry.line}, column {entry.column}: {entry.message}"
                yield BrokenRule(file, what)
            last = about


# What fmpy checks ---------------------------------------------------------------------------------------------------

_COMMON = (
    'has initial="calculated" but provides a start value',
    'has causality="independent" but provides a start value',
    "The display unit ",
    "The unit ",
)
"""Texts of findings that are common among correct FMUs."""


# Checks that are too slow or too verbose in fmpy ----------------------------------------------------------


def _names(description: ModelDescription) -> Iterator[str]:
    convention = description.variableNamingConvention or "flat"
    wrong = [
        v.name for v in description.modelVariables if not follows_convention(v.name, convention)
    ]
    if wrong:
        yield f"Names that do not follow the naming convention '{convention}': {listed(wrong)}"


def _outputs(description: ModelDescription) -> Iterator[str]:
    expected = {v.name for v in _declared(description) if v.causality == "output"}
    yield from _difference("Output", expected, _of(description.outputs), "one for each output")


def _initial_unknowns(description: ModelDescription) -> Iterator[str]:
    unknown = ("approx", "calculated")
    expected = {
        v.name
        for v in _declared(description)
        if v.causality == "calculatedParameter"
        or (v.causality == "output" and v.initial in unknown and not v.clocks)
    }
    for entry in description.derivatives:
        derivative = entry.variable
        state = derivative.derivative if derivative is not None else None
        both = [v for v in (state, derivative) if isinstance(v, ModelVariable)]
        expected |= {v.name for v in both if v.initial in unknown}
    yield from _difference(
        "InitialUnknown",
        expected,
        _of(description.initialUnknowns),
        "outputs, calculated parameters, states and derivatives whose initial value is not given",
    )


def _kinds(description: ModelDescription) -> Iterator[str]:
    entries = [*description.outputs, *description.derivatives, *description.initialUnknowns]
    entries += [*description.clockedStates, *description.eventIndicators]
    wrong = _of(
        e
        for e in entries
        if e.dependenciesKind is not None and len(e.dependenciesKind) != len(e.dependencies or ())
    )
    if wrong:
        yield (
            "Entries of ModelStructure that have not as many dependenciesKind as dependencies: "
            f"{listed(sorted(wrong))}"
        )


def _derivatives(description: ModelDescription) -> Iterator[str]:
    wrong = _of(e for e in description.derivatives if e.variable and not e.variable.derivative)
    if wrong:
        yield f"Derivatives of ModelStructure that have no attribute derivative: {listed(sorted(wrong))}"


_CHECKS: tuple[Callable[[ModelDescription], Iterator[str]], ...] = (
    _names,
    _outputs,
    _initial_unknowns,
    _kinds,
    _derivatives,
)
_COMMON_CHECKS = (_names, _initial_unknowns, _kinds)


def _declared(description: ModelDescription) -> Iterator[ModelVariable]:
    """Variables without aliases."""
    return (v for v in description.modelVariables if not v.alias)


def _of(unknowns: Iterable[Unknown]) -> set[str]:
    return {v.name for u in unknowns if (v := u.variable) is not None}


def _difference(what: str, expected: set[str], found: set[str], words: str) -> Iterator[str]:
    parts = (("missing", expected - found), ("too many", found - expected))
    told = [f"{word}: {listed(sorted(names))}" for word, names in parts if names]
    if told:
        yield f"The {what} entries of ModelStructure are not those expected ({words}); {'; '.join(told)}"


# Names of variables by the naming conventions of FMI (3.0, 2.4.7.5.1)

_INDICES = r"(?:\[\d+(?:,\d+)*\])?"
_QUOTED = r"'(?:[\w!#$%&()*+,\-./:;<>=?@\[\]^{}|~ ]|\\['\"?\\abfnrtv])+'"
_PART = rf"(?:[a-zA-Z_]\w*|{_QUOTED}){_INDICES}"
_IDENTIFIER = rf"{_PART}(?:\.{_PART})*"
_STRUCTURED = re.compile(rf"{_IDENTIFIER}|der\({_IDENTIFIER}(?:,\d+)?\)", re.ASCII)
_FLAT = re.compile(r"[^\r\n\t]*")


def follows_convention(name: str, convention: str) -> bool:
    """Whether a variable may have this name by the naming convention of its model description."""
    form = _STRUCTURED if convention == "structured" else _FLAT
    return form.fullmatch(name) is not None

"""A system structure description that is being read, and the files that it refers to.

A misspelt name of an element or attribute of SSP 1.0 and 2.0 is refused, since ignoring it changes the model. A name that
is not near any of these may belong to a tool. It is ignored with a warning, see :mod:`.ssp_schema`. None of the 121 SSP
files in public repositories is refused for a name. Names of parameters are not refused: a set may be larger than the
system.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from fmimaster.base.errors import DescriptionError, FileError, did_you_mean
from fmimaster.system.archive import open_archive, read_file
from fmimaster.system.description import Endpoint
from fmimaster.system.model import Source, Transformation, Unit
from fmimaster.system.notes import Notes, meant
from fmimaster.system.ssp_schema import INTEGERS, NAMESPACE, PREFIXES, schema_findings
from fmimaster.system.units import read_units
from fmimaster.system.xml import (
    Element,
    children,
    label,
    local_name,
    location,
    parse_lenient_xml,
    path_of_uri,
    text_of,
    value_of,
)


class Document:
    """An SSD: its elements, its units, and the notes about reading it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes = Notes()
        self.warnings = Notes()
        """Violations of the schemas of SSP in the files."""
        self.read_annotations: list[Element] = []
        """Annotations that are read; others get a note."""
        self.root = self._parse(read_file(source), str(source), "SystemStructureDescription")
        self.units = self.read_units(self.root)

    def note(self, element: Element, what: str, entry: str = "") -> None:
        """Note something about an element; entries of one kind make one line, see :class:`Notes`."""
        self.notes.add(what, entry, location(element))

    def read_units(self, root: Element) -> Mapping[str, Unit]:
        """Units that a file defines, by name."""
        return read_units(children(root, "Units", "Unit"), self.note)

    def locate(self, element: Element) -> Source:
        """File that the ``source`` attribute of an element names.

        A path on disk may lead out of the folder, with a note.

        Raises
        ------
        FileError
            If it is on another machine or is not accessed as a file.
        """
        uri = text_of(element, "source")
        scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+(?=:)", uri)  # one letter is a Windows drive
        if scheme and scheme[0].lower() != "file":
            raise FileError(
                f"{location(element)}: source '{uri}' is reached by '{scheme[0]}', expected a "
                "file. Place the file next to the description and name it by its relative path."
            )
        path = path_of_uri(uri) if scheme else unquote(uri).replace("\\", "/")
        source = self._resolve(path)
        if Path(path).is_absolute() or (self.source.member and not source.member):
            self.note(element, "sources are read from outside of the system", f"'{source}'")
        return source

    def _resolve(self, path: str) -> Source:
        if Path(path).is_absolute():
            return Source(Path(path))
        if not self.source.member:
            return Source(self.source.path.parent / path)
        member = posixpath.normpath(posixpath.join(posixpath.dirname(self.source.member), path))
        if member.startswith("../"):  # seen from inside, the archive is a folder with its name
            return Source(Path(os.path.normpath(self.source.path / member)))
        return Source(self.source.path, member)

    def read(self, element: Element, component: Source | None, expected: str) -> Element:
        """Root of the file that the ``source`` attribute of an element names.

        Parameters
        ----------
        component
            Archive that ``sourceBase="component"`` refers to; None for a system, which has none.
        expected
            Local name of the root.
        """
        base = element.get("sourceBase") or "SSD"
        if base not in ("SSD", "component"):
            raise FileError(
                f"{location(element)}: sourceBase '{base}' is not known. Expected SSD or component."
            )
        try:
            if base == "component":
                return self._read_in_component(element, component, expected)
            source = self.locate(element)
            return self._parse(read_file(source), str(source), expected)
        except FileError as error:
            raise FileError(f"{location(element)}: {error}") from error

    def _read_in_component(
        self, element: Element, component: Source | None, expected: str
    ) -> Element:
        if component is None:
            raise DescriptionError(
                f"{location(element)}: sourceBase 'component' means a file inside a component, but "
                "this is a system. Leave sourceBase out."
            )
        name = unquote(text_of(element, "source"))
        with open_archive(component) as archive:
            return self._parse(archive.read(name), f"{component}/{name}", expected)

    def _parse(self, text: bytes, where: str, expected: str) -> Element:
        root, notes = parse_lenient_xml(text, where)
        for note in notes:
            self.notes.add(note.rstrip("."))
        if local_name(root) != expected:
            raise FileError(f"{where}: the root is '{local_name(root)}', expected '{expected}'.")
        _refuse_misspelt(root)
        for line, message in schema_findings(root):
            self.warnings.add(f"{message} (schema of SSP)", where=f"{where}, line {line}")
        return root


def read_unit(element: Element, units: Mapping[str, Unit]) -> Unit | None:
    """Unit that an element names; without base units if the file does not define it."""
    name = element.get("unit")
    return units.get(name, Unit(name)) if name else None


def read_ends(element: Element) -> tuple[Endpoint, Endpoint]:
    """Start and end of a connection; without an element, an end is a connector of the system."""
    start, end = (
        Endpoint(element.get(f"{end}Element") or "", text_of(element, f"{end}Connector"))
        for end in ("start", "end")
    )
    return start, end


def linear(element: Element) -> Transformation:
    """The transformation that the attributes ``factor`` and ``offset`` describe."""
    factor, offset = (value_of(element, n, float, d) for n, d in (("factor", 1.0), ("offset", 0.0)))
    return Transformation(factor, offset)


def refuse_unknown(name: str, known: Iterable[str], what: str, where: str) -> None:
    """Refuse a name that is not among those of the elements or components of a system.

    Raises
    ------
    DescriptionError
    """
    if name not in known:
        raise DescriptionError(
            f"{where}: there is no {what} '{name}' in this system.{did_you_mean(name, known)}"
        )


def read_transformation(element: Element) -> Transformation:
    """Linear transformation of a connection or mapping entry; the identity if there is none.

    Raises
    ------
    DescriptionError
        For the mappings of Booleans, integers and enumerations.
    """
    for below in element:
        name = local_name(below)
        if name == "LinearTransformation":
            return linear(below)
        if name.endswith("MappingTransformation"):
            raise DescriptionError(
                f"{location(below)}: {name} is not supported, only LinearTransformation is. Map "
                "the values in one of the FMUs."
            )
    return Transformation()


# Names of SSP --------------------------------------------------------------------------------------------------------

_NEAR_NAMESPACE = 0.93
"""Share of equal letters from which a namespace is treated as misspelt; those of SSP differ from each other by more."""

_BASE = ("id", "description")
_FILE = (
    *_BASE,
    *("version", "name", "author", "fileversion", "copyright", "license"),
    *("generationTool", "generationDateAndTime"),
)
_BOX = ("x1", "y1", "x2", "y2")
_VALUE = ("value", "unit")
_SOURCE = ("type", "source", "sourceBase")
_SIGNATURE = (*_BASE, "role", "type", "source", "sourceBase")

_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "SystemStructureDescription": _FILE,
    "System": (*_BASE, "name"),
    "Connectors": (),
    "Connector": (*_BASE, "name", "kind"),
    "ConnectorGeometry": ("x", "y", "systemInnerX", "systemInnerY"),
    "ElementGeometry": (
        *_BOX,
        *("rotation", "iconSource", "iconRotation", "iconFlip", "iconFixedAspectRatio"),
    ),
    "SystemGeometry": _BOX,
    "GraphicalElements": (),
    "Note": (*_BOX, "text"),
    "ParameterBindings": (),
    "ParameterBinding": (*_BASE, *_SOURCE, "prefix"),
    "ParameterValues": (),
    "ParameterMapping": (*_FILE, *_SOURCE),
    "MappingEntry": (*_BASE, "source", "target", "suppressUnitConversion"),
    "LinearTransformation": ("factor", "offset"),
    "BooleanMappingTransformation": (),
    "IntegerMappingTransformation": (),
    "EnumerationMappingTransformation": (),
    "MapEntry": ("source", "target"),
    "Elements": (),
    "Component": (*_BASE, "name", "type", "source", "implementation"),
    "SignalDictionaryReference": (*_BASE, "name", "dictionary"),
    "SignalDictionaries": (),
    "SignalDictionary": (*_FILE, *_SOURCE),
    "DictionaryEntry": (*_BASE, "name"),
    "Connections": (),
    "Connection": (
        *_BASE,
        *("startElement", "startConnector", "endElement", "endConnector"),
        *("suppressUnitConversion", "startIndices", "endIndices"),
    ),
    "ConnectionGeometry": ("pointsX", "pointsY"),
    "DefaultExperiment": ("startTime", "stopTime"),
    "ParameterSet": _FILE,
    "Parameters": (),
    "Parameter": (*_BASE, "name"),
    **dict.fromkeys(("Real", "Float64", "Float32"), _VALUE),
    **dict.fromkeys(("Integer", *INTEGERS, "Boolean", "String"), ("value",)),
    "Binary": ("mime-type", "value"),
    "Enumeration": (*_BASE, "name", "value"),
    "Value": ("value",),
    "Dimension": ("size", "sizeConnector"),
    "Clock": (
        "name",
        *("intervalVariability", "intervalDecimal", "intervalCounter", "shiftDecimal"),
        *("shiftCounter", "resolution", "priority", "canBeDeactivated", "supportsFraction"),
    ),
    "Enumerations": (),
    "Item": ("name", "value"),
    "Units": (),
    "Unit": (*_BASE, "name"),
    "BaseUnit": ("kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset"),
    "Annotations": (),
    "Annotation": ("type",),
    "MetaData": (*_SIGNATURE, "kind"),
    "Signature": _SIGNATURE,
    "Content": (),
}
"""Element → its attributes."""

_ELEMENTS = tuple(_ATTRIBUTES)

_FOREIGN = ("Annotation", "Content")
"""Elements with arbitrary content."""


def _refuse_misspelt(root: Element) -> None:
    """Refuse elements and attributes with misspelt names of SSP.

    Raises
    ------
    DescriptionError
        With the place of the first one, and the name that is probably meant.
    """
    for element in _elements_of_ssp(root):
        name = local_name(element)
        known = _ATTRIBUTES.get(name)
        if known is None:
            _refuse_near(element, f"element '{name}'", name, _ELEMENTS)
            continue
        for attribute in element.attrib:
            if not attribute.startswith("{") and ":" not in attribute and attribute not in known:
                what = f"attribute '{attribute}' of {label(element)}"
                _refuse_near(element, what, attribute, known)


def _elements_of_ssp(element: Element) -> Iterator[Element]:
    """An element and those below it, without the content of other tools."""
    if not _is_of_ssp(element):
        return
    yield element
    if local_name(element) not in _FOREIGN:
        for below in element:
            yield from _elements_of_ssp(below)


def _is_of_ssp(element: Element) -> bool:
    if element.tag.startswith("{"):
        namespace = element.tag[1:].partition("}")[0]
        near = _namespace(namespace)
        if near is not None and near != namespace:
            raise DescriptionError(
                f"{location(element)}: namespace '{namespace}' is not one of SSP. Did you mean '{near}'? Correct the "
                "spelling."
            )
        return near is not None
    prefix, colon, _ = element.tag.partition(":")
    return not colon or prefix in PREFIXES


def _refuse_near(element: Element, what: str, name: str, known: tuple[str, ...]) -> None:
    near = _nearest(name, known)
    if near is not None:
        raise DescriptionError(
            f"{location(element)}: {what} is not known in SSP. Did you mean '{near}'? Correct the spelling; otherwise "
            "it would be ignored, and the model would be different."
        )


_nearest = lru_cache(maxsize=1000)(meant)


@lru_cache(maxsize=100)
def _namespace(namespace: str) -> str | None:
    """The namespace of SSP that this one is, or that is probably meant."""
    return meant(namespace, [NAMESPACE + part for part in PREFIXES.values()], _NEAR_NAMESPACE)

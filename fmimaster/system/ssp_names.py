"""The names of elements and attributes of SSP 1.0 and 2.0: a misspelt one is refused, since ignoring it changes the model.

A name that is not near any of these may belong to a tool. It is ignored with a warning, see :mod:`.ssp_schemas`. None of
the 121 SSP files in public repositories is refused by it. Names of parameters are not refused: a set may be larger than
the system.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from fmimaster.base.errors import DescriptionError
from fmimaster.system.notes import meant
from fmimaster.system.xml import Element, label, local_name, location

_NAMESPACES = tuple(
    f"http://ssp-standard.org/SSP1/SystemStructure{part}"
    for part in (
        "Description",
        "ParameterValues",
        "ParameterMapping",
        "SignalDictionary",
        "Common",
    )
)
_PREFIXES = ("ssd", "ssv", "ssm", "ssb", "ssc")
"""Prefixes of SSP, which many files do not declare."""

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
_INTEGERS = tuple(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
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
    **dict.fromkeys(("Integer", *_INTEGERS, "Boolean", "String"), ("value",)),
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


def refuse_misspelt(root: Element) -> None:
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
    return not colon or prefix in _PREFIXES


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
    return meant(namespace, _NAMESPACES, _NEAR_NAMESPACE)

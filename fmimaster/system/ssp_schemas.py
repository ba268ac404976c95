"""System descriptions are checked against the schemas of SSP 1.0 from fmpy, to find misspelt names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from threading import Lock
from typing import Any

from lxml import etree  # type: ignore[import-untyped,unused-ignore]

from fmimaster.system.xml import Element, local_name

_LOCK = Lock()
"""A schema keeps its findings, so only one thread may use it at a time."""
_NAMESPACE = "http://ssp-standard.org/SSP1/SystemStructure"
_PREFIXES = {
    "ssd": "Description",
    "ssv": "ParameterValues",
    "ssm": "ParameterMapping",
    "ssb": "SignalDictionary",
    "ssc": "Common",
}
"""Usual prefix → last part of the namespace and of the file of the schema."""

_ROOTS = ("SystemStructureDescription", "ParameterSet", "ParameterMapping")
_LONGEST = 300
"""Most characters of a message, which can contain a value from the file."""

# Additions of version 2.0, as far as they are read here. Values are checked when parameters are read.
_NEWER_ELEMENTS = ("MetaData", "Signature", "Dimension", "Value")
_NEWER_ATTRIBUTES = ("systemInnerX", "systemInnerY")
_NEWER_KINDS = ("structuralParameter", "constant", "local", "unspecified")
_INTEGERS = tuple(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_OLDER_TYPES = {
    "Float64": "Real",
    "Float32": "Real",
    "Clock": "Boolean",
    **dict.fromkeys(_INTEGERS, "Integer"),
}
_NUMBERS = ("Real", "Integer", "Boolean")
_TEXTS = ("String", "Enumeration", "Binary")


def schema_findings(root: Element) -> Iterator[tuple[int, str]]:
    """Line and message of each place where a document breaks the schema of its kind.

    Parameter sets and mappings inside of a description are checked as well. A document of version 2.0 is checked
    without the additions of that version, and undeclared prefixes have their usual meaning.
    """
    schema = _schema()
    if schema is None:
        return
    is_newer = any(e.get("version") == "2.0" for e in root.iter() if local_name(e) in _ROOTS)
    if is_newer or not root.tag.startswith("{"):
        root = deepcopy(root)
        _declare_prefixes(root)
        if is_newer:
            _remove_newer(root)
    with _LOCK:
        errors = [] if schema.validate(root) else list(schema.error_log)
    for error in errors:
        # the message has a namespace before each name, which is of no use here
        message = re.sub(r"\{[^{}]*\}", "", error.message).strip().rstrip(".")
        yield error.line, shorten(message, _LONGEST, placeholder=" ...")


@cache
def _schema() -> Any:
    """All schemas as one; None if there are none. They are read at the first use, in some milliseconds."""
    fmpy = find_spec("fmpy")
    folder = Path((fmpy and fmpy.origin) or "").parent / "ssp" / "schema"
    if not (folder / "SystemStructureDescription.xsd").is_file():
        return None
    imports = "".join(
        f'<xs:import namespace="{_NAMESPACE}{part}" schemaLocation="SystemStructure{part}.xsd"/>'
        for part in _PREFIXES.values()
    )
    text = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(text, base_url=str(folder / "all.xsd")))


def _declare_prefixes(root: Any) -> None:
    for element in root.iter():
        prefix, colon, name = element.tag.rpartition("}")[2].partition(":")
        if colon and prefix in _PREFIXES:
            element.tag = f"{{{_NAMESPACE}{_PREFIXES[prefix]}}}{name}"


def _remove_newer(root: Any) -> None:
    """Remove the additions of version 2.0."""
    for element in list(root.iter()):
        if not element.tag.startswith(f"{{{_NAMESPACE}"):
            continue
        name = local_name(element)
        is_reference = name == "Clock" and "name" in element.attrib
        if (name in _NEWER_ELEMENTS or is_reference) and element.getparent() is not None:
            element.getparent().remove(element)
        else:
            _make_older(element, name)


def _make_older(element: Any, name: str) -> None:
    for attribute in _NEWER_ATTRIBUTES:
        element.attrib.pop(attribute, None)
    if element.get("version") == "2.0":
        element.set("version", "1.0")
    if name == "Connector" and element.get("kind") in _NEWER_KINDS:
        element.set("kind", "parameter")
    if name == "Clock":
        element.attrib.clear()
    if name == "Annotation":  # may hold text as well
        element.text = None
        for below in element:
            below.tail = None
    if name in _OLDER_TYPES:
        element.tag = element.tag.replace(f"}}{name}", f"}}{_OLDER_TYPES[name]}")
        name = _OLDER_TYPES[name]
    if name in _NUMBERS and "value" in element.attrib:
        element.set("value", "0")
    if name in _TEXTS and "value" not in element.attrib and "ParameterValues" in element.tag:
        element.set("value", "")

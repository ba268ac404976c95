"""The schemas of SSP: where a file breaks them, and what SSP 2.0 adds to those of SSP 1.0, as changes of these.

A document of version 2.0 is checked as it stands, so findings name the elements that it has. Source: SSP 2.0, sections on
the formats of the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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
NAMESPACE = "http://ssp-standard.org/SSP1/SystemStructure"
"""Of SSP, without its last part."""
PREFIXES = {
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


def schema_findings(root: Element) -> Iterator[tuple[int, str]]:
    """Line and message of each place where a document breaks the schema of its kind.

    Parameter sets and mappings inside of a description are checked as well. Undeclared prefixes have their usual meaning.
    """
    is_newer = any(e.get("version") == "2.0" for e in root.iter() if local_name(e) in _ROOTS)
    schema = _schema(is_newer)
    if schema is None:
        return
    if not root.tag.startswith("{"):
        root = deepcopy(root)
        _declare_prefixes(root)
    with _LOCK:
        errors = [] if schema.validate(root) else list(schema.error_log)
    for error in errors:
        # the message has a namespace before each name, which is of no use here
        message = re.sub(r"\{http[^{}]*\}", "", error.message).strip().rstrip(".")
        yield error.line, shorten(message, _LONGEST, placeholder=" ...")


class _Version2(etree.Resolver):  # type: ignore[misc,unused-ignore]
    """Gives the schemas in a folder, with the additions of version 2.0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resolve(  # type: ignore[override,unused-ignore]
        self, url: str, public_id: str | None, context: Any
    ) -> Any:
        path = self.folder / Path(url).name  # the rest is an address (Windows) or a path
        schema = etree.fromstring(path.read_bytes())
        _change_to_version_2(path.stem.removeprefix("SystemStructure"), schema)
        return self.resolve_string(etree.tostring(schema), context, base_url=url)


@cache
def _schema(is_newer: bool) -> Any:
    """All schemas as one; None if there are none. They are read at the first use, in some milliseconds."""
    fmpy = find_spec("fmpy")
    folder = Path((fmpy and fmpy.origin) or "").parent / "ssp" / "schema"
    if not (folder / "SystemStructureDescription.xsd").is_file():
        return None
    imports = "".join(
        f'<xs:import namespace="{NAMESPACE}{part}" schemaLocation="SystemStructure{part}.xsd"/>'
        for part in PREFIXES.values()
    )
    text = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{imports}</xs:schema>'
    parser = etree.XMLParser()
    if is_newer:
        parser.resolvers.add(_Version2(folder))
    return etree.XMLSchema(etree.fromstring(text, parser, base_url=str(folder / "all.xsd")))


def _declare_prefixes(root: Any) -> None:
    for element in root.iter():
        prefix, colon, name = element.tag.rpartition("}")[2].partition(":")
        if colon and prefix in PREFIXES:
            element.tag = f"{{{NAMESPACE}{PREFIXES[prefix]}}}{name}"


_SCHEMA = "http://www.w3.org/2001/XMLSchema"
_COMMON = f"{NAMESPACE}Common"
_PATHS = {"xs": _SCHEMA}

INTEGERS: Mapping[str, str] = {
    "Int8": "byte",
    "UInt8": "unsignedByte",
    "Int16": "short",
    "UInt16": "unsignedShort",
    "Int32": "int",
    "UInt32": "unsignedInt",
    "Int64": "long",
    "UInt64": "unsignedLong",
}
_FLOATS: Mapping[str, str] = {"Float64": "double", "Float32": "float"}
"""Types that are new → the type of one of their values in XML schema."""
_OLDER: Mapping[str, str] = {"Real": "double", "Integer": "int", "Boolean": "boolean"}
_TEXTS: Mapping[str, str] = {"String": "string", "Enumeration": "string", "Binary": "hexBinary"}

_UNIT = '<xs:attribute name="unit" type="xs:string"/>'
_IMPLEMENTATION, _KIND = "//xs:attribute[@name='implementation']", "//xs:attribute[@name='kind']"
_END = "//xs:element[@name='Annotations']"


def _change_to_version_2(part: str, schema: Any) -> None:
    """Change a schema of SSP 1.0 so that it describes files of both versions; ``part`` ends its namespace: "Common"."""
    for pattern in schema.iterfind(".//xs:pattern", _PATHS):
        _behind(pattern, '<xs:pattern value="2[.]0"/>')
    if part == "Common":
        _change_common(schema)
        return
    root = schema.find("xs:element/xs:complexType/xs:sequence", _PATHS)
    _before(root.find("xs:element[@name='Annotations']", _PATHS), _META_DATA)
    change = _CHANGES.get(part)
    if change is not None:
        change(schema)


def _change_common(schema: Any) -> None:
    _one(schema, "//xs:element[@name='Item']//xs:attribute[@name='value']").set("type", "xs:long")
    _one(schema, "//xs:element[@name='Annotation']/xs:complexType").set("mixed", "true")
    mapping = "//xs:element[@name='IntegerMappingTransformation']//xs:attribute"
    for attribute in schema.xpath(mapping, namespaces=_PATHS):
        attribute.set("type", "xs:integer")
    types = _one(schema, "//xs:group[@name='GTypeChoice']/xs:choice")
    for name in _FLOATS:
        _into(types, _element(name, _UNIT))
    for name in INTEGERS:
        _into(types, _element(name, ""))
    _into(types, _CLOCK)
    for text in _GROUPS:
        _into(schema, text)


def _change_description(schema: Any) -> None:
    _into(_one(schema, "//xs:complexType[@name='TElement']/xs:sequence"), _META_DATA)
    _before(_one(schema, f"//xs:element[@name='ParameterBinding']{_END}"), _META_DATA)
    component = "//xs:complexType[@name='TComponent']"
    _one(schema, f"{component}//xs:attribute[@name='source']").set("use", "optional")
    _into(
        _one(schema, f"{component}{_IMPLEMENTATION}//xs:restriction"),
        '<xs:enumeration value="ScheduledExecution"/>',
    )
    connection = _one(schema, "//xs:element[@name='Connection']/xs:complexType")
    for name in ("startIndices", "endIndices"):
        _into(connection, _list(name, "unsignedLong", "optional"))
    _change_connector(_one(schema, "//xs:element[@name='Connector']"))


def _change_connector(connector: Any) -> None:
    type_ = _one(connector, ".//xs:group")
    _behind(type_, _element("Clock", _NAME, ' minOccurs="0" maxOccurs="unbounded"'))
    _behind(type_, _DIMENSIONS)
    geometry = _one(connector, ".//xs:element[@name='ConnectorGeometry']/xs:complexType")
    for name in ("systemInnerX", "systemInnerY"):
        _into(geometry, f'<xs:attribute name="{name}" type="xs:double"/>')
    kinds = _one(connector, f".{_KIND}//xs:restriction")
    for kind in ("structuralParameter", "constant", "local", "unspecified"):
        _into(kinds, f'<xs:enumeration value="{kind}"/>')


def _change_parameters(schema: Any) -> None:
    values = _one(schema, "//xs:complexType[@name='TParameter']/xs:sequence/xs:choice")
    for name, kind in {**_FLOATS, **INTEGERS, **_OLDER}.items():
        for older in values.iterfind(f"xs:element[@name='{name}']", _PATHS):
            values.remove(older)
        unit = _UNIT if kind in ("double", "float") else ""
        _into(values, _element(name, _list("value", kind, "required") + unit))
    for name, kind in _TEXTS.items():
        content = _one(values, f"xs:element[@name='{name}']/xs:complexType")
        _one(content, "xs:attribute[@name='value']").attrib.pop("use")
        value = f'<xs:attribute name="value" type="xs:{kind}" use="required"/>'
        many = _element("Value", value, ' minOccurs="0" maxOccurs="unbounded"')
        _before(content[0], f"<xs:sequence>{many}</xs:sequence>")
    _behind(values, _DIMENSIONS)


def _change_dictionary(schema: Any) -> None:
    _behind(_one(schema, "//xs:group[@ref='ssc:GTypeChoice']"), _DIMENSIONS)


_CHANGES: Mapping[str, Callable[[Any], None]] = {
    "Description": _change_description,
    "ParameterValues": _change_parameters,
    "SignalDictionary": _change_dictionary,
}

# Parts of schemas ------------------------------------------------------------------------------------------------------


def _element(name: str, content: str, times: str = "") -> str:
    return (
        f'<xs:element name="{name}"{times}><xs:complexType>{content}</xs:complexType></xs:element>'
    )


def _list(name: str, kind: str, use: str) -> str:
    """An attribute with any number of values."""
    content = f'<xs:simpleType><xs:list itemType="xs:{kind}"/></xs:simpleType>'
    return f'<xs:attribute name="{name}" use="{use}">{content}</xs:attribute>'


def _choice(name: str, use: str, *words: str) -> str:
    """An attribute with one of some words."""
    inside = "".join(f'<xs:enumeration value="{word}"/>' for word in words)
    content = (
        f'<xs:simpleType><xs:restriction base="xs:string">{inside}</xs:restriction></xs:simpleType>'
    )
    return f'<xs:attribute name="{name}" use="{use}">{content}</xs:attribute>'


def _attributes(kind: str, *names: str) -> str:
    return "".join(f'<xs:attribute name="{name}" type="xs:{kind}"/>' for name in names)


_NAME = '<xs:attribute name="name" type="xs:string" use="required"/>'
_BASE = '<xs:attributeGroup ref="ssc:ABaseElement"/>'
_META_DATA = '<xs:group ref="ssc:GMetaData"/>'
_DIMENSIONS = '<xs:group ref="ssc:GDimensions"/>'
_CLOCK = _element(
    "Clock",
    _choice(
        "intervalVariability",
        "optional",
        *("constant", "fixed", "tunable", "changing", "countdown", "triggered"),
    )
    + _attributes("double", "intervalDecimal", "shiftDecimal")
    + _attributes("boolean", "supportsFraction")
    + _attributes("unsignedLong", "resolution", "intervalCounter", "shiftCounter")
    + _attributes("unsignedInt", "priority"),
)
_FILE = '<xs:attribute name="type" type="xs:string" use="required"/>' + _attributes(
    "anyURI", "source"
)
_ANYTHING = '<xs:any processContents="lax" minOccurs="0" maxOccurs="unbounded"/>'
_CONTENT = (
    '<xs:element name="Content" minOccurs="0"><xs:complexType mixed="true">'
    f"<xs:sequence>{_ANYTHING}</xs:sequence>{_BASE}</xs:complexType></xs:element>"
)
_SIGNATURE = _element(
    "Signature",
    f"<xs:sequence>{_CONTENT}</xs:sequence>"
    + _choice("role", "required", "authenticity", "suitability")
    + _FILE
    + _choice("sourceBase", "optional", "file", "resource", "metaData")
    + _BASE,
    ' minOccurs="0" maxOccurs="unbounded"',
)
_GROUPS = (
    # MetaData, and the signatures of the file behind them
    '<xs:group name="GMetaData"><xs:sequence>'
    + _element(
        "MetaData",
        f"<xs:sequence>{_CONTENT}{_SIGNATURE}</xs:sequence>"
        + _choice("kind", "required", "general", "quality")
        + _FILE
        + _choice("sourceBase", "optional", "file", "resource")
        + _BASE,
        ' minOccurs="0" maxOccurs="unbounded"',
    )
    + f"{_SIGNATURE}</xs:sequence></xs:group>",
    '<xs:group name="GDimensions"><xs:sequence>'
    + _element(
        "Dimension",
        _attributes("unsignedLong", "size") + _attributes("string", "sizeConnector"),
        ' minOccurs="0" maxOccurs="unbounded"',
    )
    + "</xs:sequence></xs:group>",
)


def _one(element: Any, path: str) -> Any:
    """The first element at a path."""
    return element.xpath(path, namespaces=_PATHS)[0]


def _parsed(text: str) -> Iterator[Any]:
    yield from etree.fromstring(f'<x xmlns:xs="{_SCHEMA}" xmlns:ssc="{_COMMON}">{text}</x>')


def _into(element: Any, text: str) -> None:
    """Append to an element."""
    element.extend(list(_parsed(text)))


def _before(element: Any, text: str) -> None:
    for added in list(_parsed(text)):
        element.addprevious(added)


def _behind(element: Any, text: str) -> None:
    for added in reversed(list(_parsed(text))):
        element.addnext(added)

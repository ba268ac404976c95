"""A system structure description that is being read, and the files that it refers to."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

from lxml import etree  # type: ignore[import-untyped,unused-ignore]

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system.archive import open_archive, read_file
from fmimaster.system.description import Source, Transformation
from fmimaster.system.model import Unit
from fmimaster.system.notes import Notes
from fmimaster.system.ssp_names import refuse_misspelt
from fmimaster.system.ssp_schema_additions import with_version_2
from fmimaster.system.units import read_units
from fmimaster.system.xml import (
    Element,
    children,
    local_name,
    location,
    parse_lenient_xml,
    text_of,
    value_of,
)

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

    def resolve(  # type: ignore[override,unused-ignore]
        self, url: str, public_id: str | None, context: Any
    ) -> Any:
        path = Path(url)
        schema = etree.fromstring(path.read_bytes())
        with_version_2(path.stem.removeprefix("SystemStructure"), schema)
        return self.resolve_string(etree.tostring(schema), context, base_url=url)


@cache
def _schema(is_newer: bool) -> Any:
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
    parser = etree.XMLParser()
    if is_newer:
        parser.resolvers.add(_Version2())
    return etree.XMLSchema(etree.fromstring(text, parser, base_url=str(folder / "all.xsd")))


def _declare_prefixes(root: Any) -> None:
    for element in root.iter():
        prefix, colon, name = element.tag.rpartition("}")[2].partition(":")
        if colon and prefix in _PREFIXES:
            element.tag = f"{{{_NAMESPACE}{_PREFIXES[prefix]}}}{name}"


class Document:
    """An SSD: its elements, its units, and the notes about reading it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes = Notes()
        self.warnings = Notes()
        """Violations of the schemas of SSP in the files."""
        self.read_annotations: list[Element] = []
        """Types of annotations that are read; others get a note."""
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
        path = _path_of(uri) if scheme else unquote(uri).replace("\\", "/")
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
        refuse_misspelt(root)
        for line, message in schema_findings(root):
            self.warnings.add(f"{message} (schema of SSP)", where=f"{where}, line {line}")
        return root


def read_unit(element: Element, units: Mapping[str, Unit]) -> Unit | None:
    """Unit that an element names; without base units if the file does not define it."""
    name = element.get("unit")
    return units.get(name, Unit(name)) if name else None


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
            factor = value_of(below, "factor", float, 1.0)
            return Transformation(factor, value_of(below, "offset", float, 0.0))
        if name.endswith("MappingTransformation"):
            raise DescriptionError(
                f"{location(below)}: {name} is not supported, only LinearTransformation is. Map "
                "the values in one of the FMUs."
            )
    return Transformation()


def _path_of(uri: str) -> str:
    """The path in a URI of the scheme ``file``."""
    from urllib.request import url2pathname  # it imports the HTTP modules

    return url2pathname(urlsplit(uri).path)

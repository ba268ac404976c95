"""System descriptions are checked against the schemas of SSP from fmpy, to find misspelt names."""

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

from fmimaster.system.ssp_schema_additions import with_version_2
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

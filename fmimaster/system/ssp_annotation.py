"""Common parts of fmimaster's annotations in an SSD: one element in its own namespace, with a version."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fmimaster.errors import FileError, did_you_mean
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, local_name, location
from fmimaster.system.xml_form import Form, Value, faults

VERSION = "1.0"
"""The version that is written; any version 1.x is read."""
_VERSION = re.compile(r"1\.(0|[1-9][0-9]*)", re.ASCII)

WITH_VERSION = {"version": Value("a version 1.x", lambda t: _VERSION.fullmatch(t) is not None)}
"""The attributes of the element."""


def check_annotation(
    element: Element, name: str, namespace: str, forms: Mapping[str, Form], document: Document
) -> None:
    """Compare the element in an annotation with its form; additions of later versions are ignored with a note.

    Raises
    ------
    FileError
        If it is another element, or has a fault.
    """
    if element.tag != f"{{{namespace}}}{name}":
        found = local_name(element)
        raise FileError(
            f"{location(element)}: element {found} is not known here, expected {name} in the namespace "
            f"{namespace}.{did_you_mean(found, [name])}"
        )
    is_later = element.get("version") not in (None, VERSION)
    for fault in faults(element, forms, namespace):
        if not (fault.unknown and is_later):
            raise FileError(f"{location(fault.element)}: {fault.text}.")
        document.note(fault.element, f"{fault.text}; it is ignored")

"""The layered standard fmi-ls-ref: files that an FMU carries, among them results of the tool that has exported it.

Source: FMI-LS-REF 1.0.0-alpha.1, "Related Files".
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from fmimaster.base.errors import FileError
from fmimaster.fmu.manifest import Manifest
from fmimaster.system.archive import Archive
from fmimaster.system.model import Model
from fmimaster.system.xml import Element, local_name, parse_lenient_xml

ENDING = "fmi-ls-ref"
_MANIFEST = "fmi-ls-manifest.xml"


def extend(_: Manifest | None, model: Model) -> Model:
    """The model as it is: the standard describes files, not the FMU."""
    return model


def carried_results(archive: Archive) -> tuple[str, ...]:
    """Names of the CSV files in an FMU that its manifest calls results; without those that are missing."""
    names = archive.names()
    return tuple(
        file
        for manifest in names
        if manifest.startswith("extra/") and manifest.endswith(f"{ENDING}/{_MANIFEST}")
        for file in _results(archive, manifest)
        if file in names
    )


def _results(archive: Archive, manifest: str) -> Iterator[str]:
    try:
        root, _ = parse_lenient_xml(archive.read(manifest), f"{archive.source}/{manifest}")
    except FileError:
        return  # the model has the problem
    for element in root:
        if local_name(element) == "Related" and element.get("role") == "result":
            file = _path(element, manifest)
            if file.lower().endswith(".csv"):
                yield file


def _path(element: Element, manifest: str) -> str:
    """The file of an element, relative to its manifest; empty for an address elsewhere."""
    source = urlsplit(element.get("source") or "")
    if source.scheme or source.netloc:
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(manifest), unquote(source.path)))

"""The layered standards of an FMU: supported ones are read into its model, others are ignored with the reason.

A supported one is one file with a function ``extend(manifest, model)``. Its arguments are the manifest in the FMU (None if
there is none) and the model of the FMU; it returns the model with the additions of the layered standard. An invalid
manifest raises a :class:`ModelError`; the FMU then runs without it.

Of ``fmi-ls-ref`` it is only used which results an FMU carries.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, InputError, ModelError
from fmimaster.fmu import event_manifest, input_polynomials
from fmimaster.fmu.manifest import (
    FILE,
    Manifest,
    ManifestFile,
    UnpackedFmu,
    find_manifest,
    manifest_files,
)
from fmimaster.system.archive import Archive
from fmimaster.system.declarations import LayeredStandard
from fmimaster.system.model import Model
from fmimaster.system.xml import Element, local_name, parse_lenient_xml

_REFERENCES = "fmi-ls-ref"
"""Files that an FMU carries, among them results of the tool that has exported it.

Source: FMI-LS-REF 1.0.0-alpha.1, "Related Files".
"""


@dataclass(frozen=True, slots=True)
class Extension:
    """A supported layered standard."""

    ending: str
    """Last part of the names of its manifests, for any publisher."""
    extend: Callable[[Manifest | None, Model], Model]


EXTENSIONS: tuple[Extension, ...] = (
    Extension(event_manifest.ENDING, event_manifest.extend),
    Extension(input_polynomials.ENDING, input_polynomials.extend),
    Extension(_REFERENCES, lambda _, model: model),  # it describes files, not the FMU
)


def read_layered_standards(fmu: UnpackedFmu, model: Model) -> Model:
    """The model with the additions of its layered standards.

    An FMU runs without unknown layered standards and those with invalid manifests: ``Model.layered_standards`` has the
    reasons.
    """
    broken: dict[str, tuple[str, ...]] = {}
    try:
        files = manifest_files(fmu)
    except FileError:  # none can be named
        files = ()
    for extension in EXTENSIONS:
        try:
            model = extension.extend(find_manifest(files, extension.ending, fmu.where), model)
        except InputError as error:
            broken[extension.ending] = _problems(error)
            model = extension.extend(None, model)
    standards = tuple(_standard(file, broken) for file in files)
    return replace(model, layered_standards=standards) if standards else model


def _problems(error: InputError) -> tuple[str, ...]:
    return error.problems if isinstance(error, ModelError) else (str(error),)


def _standard(file: ManifestFile, broken: dict[str, tuple[str, ...]]) -> LayeredStandard:
    """One layered standard by its manifest, in which prefixes need not be declared."""
    folder = file.folder
    try:
        root = file.lenient_root()
        name = _attribute(root, "name") or folder
        version, description = _attribute(root, "version"), _attribute(root, "description")
        problems: tuple[str, ...] = ()
    except FileError as error:
        name, version, description, problems = folder, "", "", _problems(error)
    endings = (e.ending for e in EXTENSIONS)
    known = next((e for e in endings if name.endswith(e) or folder.endswith(e)), None)
    if known is not None:
        problems = broken.get(known, ())
    return LayeredStandard(name, version, description, known is not None, problems)


def _attribute(root: Element, name: str) -> str:
    """An attribute of all manifests, by its local name; empty if it is missing."""
    for key, value in root.attrib.items():
        if key.rpartition("}")[2].rpartition(":")[2] == f"fmi-ls-{name}":
            return " ".join(value.split())
    return ""


def carried_results(archive: Archive) -> tuple[str, ...]:
    """Names of the CSV files in an FMU that its manifest calls results; without those that are missing."""
    names = archive.names()
    return tuple(
        file
        for manifest in names
        if manifest.startswith("extra/") and manifest.endswith(f"{_REFERENCES}/{FILE}")
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

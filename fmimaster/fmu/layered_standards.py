"""The layered standards of an FMU: supported ones are read into its model, others are ignored with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fmimaster.base.errors import FileError, InputError, ModelError
from fmimaster.base.files import read_whole
from fmimaster.fmu import extensions
from fmimaster.fmu.manifest import UnpackedFmu, find_manifest, manifest_files
from fmimaster.system.declarations import LayeredStandard
from fmimaster.system.model import Model
from fmimaster.system.xml import Element, parse_lenient_xml


def read_layered_standards(fmu: UnpackedFmu, model: Model) -> Model:
    """The model with the additions of its layered standards.

    An FMU runs without unknown layered standards and those with invalid manifests: ``Model.layered_standards`` has the
    reasons.
    """
    broken: dict[str, tuple[str, ...]] = {}
    for extension in extensions.EXTENSIONS:
        try:
            model = extension.extend(find_manifest(fmu, extension.ending), model)
        except InputError as error:
            broken[extension.ending] = _problems(error)
            model = extension.extend(None, model)
    try:
        files = list(manifest_files(fmu))
    except FileError:  # the problem concerns all supported ones
        files = []
    standards = tuple(_standard(file, where, broken) for file, where in files)
    return replace(model, layered_standards=standards) if standards else model


def _problems(error: InputError) -> tuple[str, ...]:
    return error.problems if isinstance(error, ModelError) else (str(error),)


def _standard(file: Path, where: str, broken: dict[str, tuple[str, ...]]) -> LayeredStandard:
    """One layered standard by its manifest, in which prefixes need not be declared."""
    folder = file.parent.name
    try:
        root, _ = parse_lenient_xml(read_whole(file), where)
        name = _attribute(root, "name") or folder
        version, description = _attribute(root, "version"), _attribute(root, "description")
        problems: tuple[str, ...] = ()
    except FileError as error:
        name, version, description, problems = folder, "", "", _problems(error)
    endings = (e.ending for e in extensions.EXTENSIONS)
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

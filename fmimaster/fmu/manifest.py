"""Manifests of FMI layered standards in an FMU.

A layered standard has a folder ``extra/<its name>/`` in the FMU. A file ``fmi-ls-manifest.xml`` in it contains the
name, the version, and the additions of the standard (FMI 3.0, 2.6). A maintenance release of FMI 2.0 has the folder
too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fmimaster.base.errors import FileError, ModelError
from fmimaster.base.files import read_whole
from fmimaster.system.xml import Element, location, parse_xml

NAMESPACE = "http://fmi-standard.org/fmi-ls-manifest"
"""Namespace of the attributes that each manifest has."""
FILE = "fmi-ls-manifest.xml"

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})([-+].*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class UnpackedFmu:
    """Folder of an unpacked FMU, and its name in messages."""

    folder: Path
    where: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of one layered standard in one FMU."""

    root: Element
    name: str
    """``"org.fmimaster.fmi-ls-events"``."""
    version: tuple[int, int]
    """Major and minor; versions of one major number can be read by one reader."""
    where: str


def find_manifest(fmu: UnpackedFmu, ending: str) -> Manifest | None:
    """The manifest whose name has this ending, from any publisher; None if the FMU has none.

    Parameters
    ----------
    ending : str
        ``".fmi-ls-events"`` finds ``org.fmimaster.fmi-ls-events``, and a later ``org.fmi-standard.fmi-ls-events`` too.

    Raises
    ------
    FileError
        If it is malformed. A malformed manifest of another standard is ignored.
    ModelError
        If there are two of them, or its version is not of the form major.minor.patch.
    """
    found = list(_manifests(fmu, ending))
    if len(found) > 1:
        raise ModelError(
            f"'{fmu.where}' has several manifests for one layered standard: "
            f"{' and '.join(m.where.removeprefix(fmu.where + '/') for m in found)}. Expected one; remove the others."
        )
    return found[0] if found else None


def manifest_files(fmu: UnpackedFmu) -> Iterator[tuple[Path, str]]:
    """Manifests of all layered standards of an FMU: the file, and its name in messages."""
    extra = fmu.folder / "extra"
    if not extra.is_dir():
        return
    try:
        folders = sorted(extra.iterdir())
    except OSError as error:
        raise FileError(
            f"'{fmu.where}/extra' cannot be read: {error.strerror or error}."
        ) from error
    for folder in folders:
        if (folder / FILE).exists():
            yield folder / FILE, f"{fmu.where}/extra/{folder.name}/{FILE}"


def _manifests(fmu: UnpackedFmu, ending: str) -> Iterator[Manifest]:
    for file, where in manifest_files(fmu):
        folder = file.parent.name
        try:
            root = parse_xml(read_whole(file), where)
        except FileError:
            if folder.endswith(ending):
                raise
            continue
        name = root.get(f"{{{NAMESPACE}}}fmi-ls-name") or ""
        if name.endswith(ending):
            yield Manifest(root, name, _version(root), where)
        elif folder.endswith(ending):
            raise ModelError(
                f"{location(root)}: the manifest has {f'the name {name!r}' if name else 'no name'}. Expected the "
                f'attribute fmi-ls-name="{folder}" in the namespace {NAMESPACE}.'
            )


def _version(root: Element) -> tuple[int, int]:
    text = root.get(f"{{{NAMESPACE}}}fmi-ls-version") or ""
    parts = _VERSION.fullmatch(text)
    if parts is None:
        raise ModelError(
            f"{location(root)}: fmi-ls-version is {text[:60]!r}. Expected major.minor.patch, such as 0.1.0."
        )
    return int(parts[1]), int(parts[2])

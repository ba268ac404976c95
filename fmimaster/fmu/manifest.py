"""Manifests of FMI layered standards in an FMU: found, and compared with the model by their readers.

A layered standard has a folder ``extra/<its name>/`` in the FMU. A file ``fmi-ls-manifest.xml`` in it contains the
name, the version, and the additions of the standard (FMI 3.0, 2.6). A maintenance release of FMI 2.0 has the folder
too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, ModelError, did_you_mean
from fmimaster.base.files import read_whole, reason_of
from fmimaster.system.model import Causality, DataType, Model, Variability, Variable
from fmimaster.system.xml import Element, location, parse_lenient_xml, parse_xml, text_of
from fmimaster.system.xml_form import Form, faults

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

    def expect(self, standard: str, major: int) -> None:
        """Raise a ModelError if it is not of this major version."""
        if self.version[0] != major:
            version = ".".join(map(str, self.version))
            raise ModelError(
                f"{self.where}: the manifest of {standard} has version {version}, expected {major}.x. Update fmimaster, or "
                "write the manifest in the supported version."
            )


class ManifestFile:
    """The file of a manifest, read once.

    Attributes
    ----------
    folder : str
        Name of its folder, which should be that of the layered standard.
    where : str
        Its name in messages.
    """

    def __init__(self, path: Path, where: str) -> None:
        self._path = path
        self.folder = path.parent.name
        self.where = where

    @cached_property
    def root(self) -> Element | FileError:
        """Its root, or why it cannot be read."""
        try:
            return parse_xml(read_whole(self._path), self.where)
        except FileError as error:
            return error

    def lenient_root(self) -> Element:
        """Its root, also if prefixes are not declared.

        Raises
        ------
        FileError
            If it cannot be read even so.
        """
        if isinstance(self.root, FileError):
            return parse_lenient_xml(read_whole(self._path), self.where)[0]
        return self.root


def manifest_files(fmu: UnpackedFmu) -> tuple[ManifestFile, ...]:
    """Manifests of all layered standards of an FMU.

    Raises
    ------
    FileError
        If the folder of layered standards cannot be read.
    """
    extra = fmu.folder / "extra"
    if not extra.is_dir():
        return ()
    try:
        names = sorted(os.listdir(extra))
    except OSError as error:
        raise FileError(f"'{fmu.where}/extra' cannot be read: {reason_of(error)}.") from error
    paths = (extra / name / FILE for name in names)
    return tuple(
        ManifestFile(path, f"{fmu.where}/extra/{path.parent.name}/{FILE}")
        for path in paths
        if path.exists()
    )


def find_manifest(files: Iterable[ManifestFile], ending: str, fmu: str) -> Manifest | None:
    """The manifest of an FMU whose name has this ending, from any publisher; None if the FMU has none.

    Parameters
    ----------
    ending : str
        ``".fmi-ls-events"`` finds ``org.fmimaster.fmi-ls-events``, and a later ``org.fmi-standard.fmi-ls-events`` too.
    fmu : str
        Name of the FMU in messages.

    Raises
    ------
    FileError
        If it is malformed. A malformed manifest of another standard is ignored.
    ModelError
        If there are two of them, or its version is not of the form major.minor.patch.
    """
    found = [manifest for file in files if (manifest := _manifest(file, ending)) is not None]
    if len(found) > 1:
        raise ModelError(
            f"'{fmu}' has several manifests for one layered standard: "
            f"{' and '.join(m.where.removeprefix(fmu + '/') for m in found)}. Expected one; remove the others."
        )
    return found[0] if found else None


def _manifest(file: ManifestFile, ending: str) -> Manifest | None:
    root = file.root
    if isinstance(root, FileError):
        if file.folder.endswith(ending):
            raise root
        return None
    name = root.get(f"{{{NAMESPACE}}}fmi-ls-name") or ""
    if name.endswith(ending):
        return Manifest(root, name, _version(root), file.where)
    if file.folder.endswith(ending):
        raise ModelError(
            f"{location(root)}: the manifest has {f'the name {name!r}' if name else 'no name'}. Expected the "
            f'attribute fmi-ls-name="{file.folder}" in the namespace {NAMESPACE}.'
        )
    return None


def _version(root: Element) -> tuple[int, int]:
    text = root.get(f"{{{NAMESPACE}}}fmi-ls-version") or ""
    parts = _VERSION.fullmatch(text)
    if parts is None:
        raise ModelError(
            f"{location(root)}: fmi-ls-version is {text[:60]!r}. Expected major.minor.patch, such as 0.1.0."
        )
    return int(parts[1]), int(parts[2])


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a variable at one place of a manifest."""

    words: str
    """``"a Float64 output"``."""
    types: frozenset[DataType]
    causalities: frozenset[Causality]
    continuous: bool = False
    scalar: bool = True

    def fits(self, variable: Variable) -> bool:
        """Whether a variable has this role."""
        return (
            variable.type in self.types
            and variable.causality in self.causalities
            and (not self.continuous or variable.variability is Variability.CONTINUOUS)
            and (not self.scalar or not variable.dimensions)
        )


class ManifestReader:
    """Base of the readers of manifests; each layered standard derives its own.

    Attributes
    ----------
    notes : list of str
        Unusual but valid parts, each with file and line.
    """

    forms: ClassVar[Mapping[str, Form]] = {}
    """Of each element by its name; each layered standard has its own, as in its schema."""
    root: ClassVar[str] = "fmiLayeredStandardManifest"
    """Name of the root element."""
    known_version: ClassVar[tuple[int, int]] = (0, 1)
    """Latest supported version; additions of later versions are ignored with a note."""

    def __init__(self, manifest: Manifest, model: Model) -> None:
        self.manifest = manifest
        self.model = model
        self.notes: list[str] = []
        self._wrong: list[tuple[int, str]] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """Violations of rules, each with file and line, in the order of the lines."""
        return tuple(text for _, text in sorted(self._wrong, key=itemgetter(0)))

    def wrong(self, element: Element, text: str) -> None:
        """Note a violation of a rule."""
        self._wrong.append((element.sourceline, f"{location(element)}: {text}."))

    def sound(self) -> Iterator[Element]:
        """Valid elements below the root with their content; errors in other elements become problems."""
        root = self.manifest.root
        if root.tag != self.root:
            self.wrong(
                root, f"the root element is {root.tag}. Expected {self.root}, in no namespace"
            )
            return
        if root.get(f"{{{NAMESPACE}}}fmi-ls-description") is None:
            self.wrong(
                root, "attribute 'fmi-ls-description' of the root is missing. Expected a text"
            )
        broken = set[Element]()
        for fault in faults(root, self.forms):
            if fault.unknown and self.manifest.version > self.known_version:
                self.notes.append(f"{location(fault.element)}: {fault.text}; it is ignored")
            else:
                self.wrong(fault.element, fault.text)
                broken.add(fault.element)
        for element in root:
            if element.tag in self.forms and not broken.intersection(element.iter()):
                yield element

    def variable(self, element: Element, attribute: str, role: Role, what: str) -> str:
        """Name of a required variable, which must have a role.

        Parameters
        ----------
        what : str
            The place that names it, for messages: ``"Indicator of event 'collision'"``.
        """
        name = text_of(element, attribute)
        self.check_role(element, name, role, f"{what}: {attribute}")
        return name

    def optional(self, element: Element, attribute: str, role: Role, what: str) -> str | None:
        """Name of an optional variable; None if the attribute is missing."""
        if element.get(attribute) is None:
            return None
        return self.variable(element, attribute, role, what)

    def check_role(self, element: Element, name: str, role: Role, what: str) -> None:
        """Whether the FMU has a variable with this role."""
        variable = self.model.variable(name)
        if variable is None:
            fitting = [v.name for v in self.model.variables if role.fits(v)]
            every = (v.name for v in self.model.variables)
            near = did_you_mean(name, fitting) or did_you_mean(name, every)
            self.wrong(
                element,
                f"{what}='{name}' is not a variable of the FMU.{near} Expected {role.words}; correct the name",
            )
        elif not role.fits(variable):
            self.wrong(
                element,
                f"{what}='{name}' is {_kind(variable)}. Expected {role.words}; name another variable, or export the "
                "FMU with one",
            )


def _kind(variable: Variable) -> str:
    array = " array" if variable.dimensions else ""
    text = f"{variable.variability.value} {variable.type.value}{array} {variable.causality.value}"
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"

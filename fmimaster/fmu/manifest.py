"""Manifests of FMI layered standards in an FMU: found, and compared with the model by their readers.

A layered standard has a folder ``extra/<its name>/`` in the FMU. A file ``fmi-ls-manifest.xml`` in it contains the
name, the version, and the additions of the standard (FMI 3.0, 2.6). A maintenance release of FMI 2.0 has the folder
too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, ModelError, did_you_mean
from fmimaster.base.files import read_whole, reason_of
from fmimaster.system.model import Causality, DataType, Model, Variability, Variable
from fmimaster.system.xml import Element, location, parse_xml, text_of
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
        raise FileError(f"'{fmu.where}/extra' cannot be read: {reason_of(error)}.") from error
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

"""Writes the manifest of a layered standard, and adds it to a copy of an FMU that was exported without one."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lxml import etree  # type: ignore[import-untyped,unused-ignore]

from fmimaster.base.errors import FileError, ModelError, OptionError
from fmimaster.base.files import check_is_file, put_in_place, reason_of
from fmimaster.fmu import event_manifest, input_polynomials
from fmimaster.fmu.event_manifest import EventManifest
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest import FILE, NAMESPACE
from fmimaster.system.archive import open_archive
from fmimaster.system.declarations import InputPolynomial
from fmimaster.system.model import Source
from fmimaster.system.xml import parse_xml
from fmimaster.system.zip_entries import DAMAGE, entry_name


def add_manifest(
    fmu: str | os.PathLike[str], manifest: bytes, output: str | os.PathLike[str]
) -> Path:
    """Copy an FMU, with a manifest in its folder ``extra/``. One of the same name is replaced.

    Parameters
    ----------
    fmu
        An FMU as an archive.
    manifest
        The manifest as a file, for example from :func:`fmimaster.fmu.manifest_writer.write_manifest`; its
        attribute ``fmi-ls-name`` is the name of its folder.
    output
        The FMU to be written. Nothing else in the FMU changes, so other tools can use it as before.

    Returns
    -------
    ``output`` as a path.

    Raises
    ------
    FileError
        If the FMU cannot be read, the manifest is malformed, or ``output`` is the FMU itself or cannot be written.
    ModelError
        If the manifest does not fit the FMU. Nothing is written then.
    """
    fmu, output = Path(fmu), Path(output)
    check_is_file(fmu)
    name = parse_xml(manifest, "the manifest").get(f"{{{NAMESPACE}}}fmi-ls-name")
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise ModelError(
            f"The manifest has the name {name!r}. Expected an attribute fmi-ls-name in the namespace {NAMESPACE}, such as "
            "org.fmimaster.fmi-ls-events."
        )
    if output.exists() and output.samefile(fmu):
        raise FileError(f"'{output}' is the FMU itself. Choose another name for the copy.")
    part = output.with_name(f"{output.name}.part.fmu")
    try:
        _copy(fmu, part, f"extra/{name}/{FILE}", manifest)
        _check(part, name)
        put_in_place(part, output)
    except DAMAGE as error:
        raise FileError(
            f"'{output}' cannot be written: {reason_of(error)}. Get the FMU again, or choose another place."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return output


def _check(fmu: Path, name: str) -> None:
    """Refuse an FMU in which the manifest of a layered standard is wrong."""
    file = FmuFile(Source(fmu))
    file.close()
    for standard in file.model.layered_standards:
        if standard.name == name and standard.problems:
            raise ModelError(*standard.problems)


def _copy(fmu: Path, output: Path, member: str, content: bytes) -> None:
    source = Source(fmu)
    with (
        open_archive(source),  # refuses unsafe files, and files that are not archives
        zipfile.ZipFile(fmu) as before,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        copied = {member}
        for info in before.infolist():
            name = entry_name(info, source)
            if name not in copied:
                copied.add(name)  # some archives contain a file twice
                with before.open(info) as read, after.open(info, "w") as written:
                    shutil.copyfileobj(read, written)
        after.writestr(member, content)


_DESCRIPTION = "Event indicator sets, shared events, look-ahead"
_DESCRIPTION_OF_POLYNOMIALS = "Inputs as polynomials over a communication step"


def write_manifest(content: EventManifest) -> bytes:
    """Write the manifest of events as a file; reading the file gives the same manifest.

    Input polynomials are not in it: they have a manifest of their own, see :func:`write_polynomials`.
    """
    root = _root(event_manifest.STANDARD, event_manifest.VERSION, _DESCRIPTION)
    for event in content.events:
        element = _add(
            root,
            "Event",
            name=event.name,
            scope=event.scope.value,
            announce=event.announce,
            trigger=event.trigger,
            rightLimitsWithoutStep="true" if event.right_limits_without_step else None,
            active=event.active,
        )
        for i in event.indicators:
            _add(element, "Indicator", name=i.name, derivative=i.derivative, tolerance=i.tolerance)
        for p in event.payload:
            _add(element, "Payload", output=p.output, input=p.input, member=p.member)
        if (c := event.contact) is not None:
            _add(
                element,
                "Contact",
                velocity=c.velocity,
                direction=c.direction,
                inverseMass=c.inverse_mass,
                restitution=c.restitution,
                impulse=c.impulse,
                force=c.force,
                parameter=c.parameter,
                value=c.value,
            )
    if content.policy is not None:
        policy = content.policy
        values = {
            "execute": policy.execute,
            "announce": policy.announce,
            "ignore": policy.ignore,
        }
        _add(root, "Policy", parameter=policy.parameter, **values)
    if content.look_ahead is not None:
        _add(root, "LookAhead", next=content.look_ahead)
    return _text(root)


def write_polynomials(polynomials: Iterable[InputPolynomial]) -> bytes:
    """Write the manifest of input polynomials as a file; reading the file gives the same polynomials.

    Raises
    ------
    OptionError
        If coefficients are neither one array nor scalars ``stem[0]``, ``stem[1]``, ….
    """
    standard, version = input_polynomials.STANDARD, input_polynomials.VERSION
    root = _root(standard, version, _DESCRIPTION_OF_POLYNOMIALS)
    for polynomial in polynomials:
        _add(
            root,
            "InputPolynomial",
            input=polynomial.input,
            derivative=polynomial.derivative,
            coefficients=_stem(polynomial),
            parameter=polynomial.parameter,
            value=polynomial.value,
        )
    return _text(root)


def _root(standard: str, version: tuple[int, int], description: str) -> Any:
    root: Any = etree.Element("fmiLayeredStandardManifest", nsmap={"fmi-ls": NAMESPACE})
    root.set(f"{{{NAMESPACE}}}fmi-ls-name", standard)
    root.set(f"{{{NAMESPACE}}}fmi-ls-version", f"{version[0]}.{version[1]}.0")
    root.set(f"{{{NAMESPACE}}}fmi-ls-description", description)
    return root


def _text(root: Any) -> bytes:
    text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return text


def _add(parent: Any, tag: str, /, **attributes: str | float | None) -> Any:
    """A new element; attributes that are None are left out."""
    given = {key: str(value) for key, value in attributes.items() if value is not None}
    return etree.SubElement(parent, tag, given)


def _stem(polynomial: InputPolynomial) -> str:
    names = polynomial.coefficients
    if len(names) == 1 and not names[0].endswith("[0]"):
        return names[0]
    stem = re.sub(r"\[0\]$", "", names[0]) if names else ""
    if not names or names != tuple(f"{stem}[{k}]" for k in range(len(names))):
        raise OptionError(
            f"The coefficients {names} of the input polynomial of '{polynomial.input}' have no common name. Expected one "
            "array, or scalars with the names stem[0], stem[1], …."
        )
    return stem

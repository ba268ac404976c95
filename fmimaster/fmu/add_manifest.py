"""Adds the manifest of a layered standard to a copy of an FMU that was exported without it."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from fmimaster.base.errors import FileError, ModelError
from fmimaster.base.files import check_is_file
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest import FILE, NAMESPACE
from fmimaster.system.archive import open_archive
from fmimaster.system.description import Source
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
        The manifest as a file, for example from :func:`fmimaster.fmu.extensions.events_writer.write_manifest`; its
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
        part.replace(output)
    except DAMAGE as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(
            f"'{output}' cannot be written: {reason}. Get the FMU again, or choose another place."
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

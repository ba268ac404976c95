"""Adding the manifest of a layered standard to an FMU that was exported without it: a copy, for trials."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from fmimaster.errors import FileError, ModelError
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest import FILE, NAMESPACE
from fmimaster.system.archive import open_archive
from fmimaster.system.description import Source
from fmimaster.system.xml import parse_xml


def add_manifest(
    fmu: str | os.PathLike[str], manifest: bytes, output: str | os.PathLike[str]
) -> Path:
    """Copy an FMU, with a manifest in its folder ``extra/``. One of the same name is replaced.

    Parameters
    ----------
    fmu
        An FMU as an archive.
    manifest
        The manifest as a file, such as :func:`fmimaster.fmu.extensions.events_writer.write_manifest` makes it; its
        attribute ``fmi-ls-name`` is the name of its folder.
    output
        The FMU to be written. Nothing else of the FMU changes, so that every other tool can use it as before.

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
    name = parse_xml(manifest, "the manifest").get(f"{{{NAMESPACE}}}fmi-ls-name")
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise ModelError(
            f"The manifest has the name {name!r}. Expected an attribute fmi-ls-name in the namespace {NAMESPACE}, such as "
            "org.fmimaster.fmi-ls-events."
        )
    with open_archive(Source(fmu)):  # refuses what is unsafe, or no archive
        pass
    if output.exists() and output.samefile(fmu):
        raise FileError(f"'{output}' is the FMU itself. Choose another name for the copy.")
    part = output.with_name(f"{output.name}.part.fmu")
    try:
        _copy(fmu, part, f"extra/{name}/{FILE}", manifest)
        FmuFile(Source(part)).close()  # reads the manifest, and all others
        part.replace(output)
    except OSError as error:
        raise FileError(
            f"'{output}' cannot be written: {error.strerror or error}. Choose another place."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return output


def _copy(fmu: Path, output: Path, member: str, content: bytes) -> None:
    with (
        zipfile.ZipFile(fmu) as before,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        for info in before.infolist():
            if info.filename != member:
                after.writestr(info, before.read(info))
        after.writestr(member, content)

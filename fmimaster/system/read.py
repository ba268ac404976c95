"""The system that a file or folder describes: an FMU, SSP, or the Open Simulation Platform."""

from __future__ import annotations

from pathlib import Path

from fmimaster.base.errors import FileError
from fmimaster.base.files import check_exists, given_path
from fmimaster.system.description import Component, System, SystemDescription
from fmimaster.system.model import Source


def read_system(path: Path | str) -> SystemDescription:
    """Read the system that a file or folder describes.

    Parameters
    ----------
    path
        An SSP archive (``.ssp``), a folder with a ``SystemStructure.ssd``, a single ``.ssd`` (its
        sources are relative to it), an FMU (``.fmu``) or the folder of an unpacked FMU, which makes
        a system of one component, or an ``OspSystemStructure.xml`` or a folder with it.

    Returns
    -------
    Description with a note for everything that was taken in another way than written, or was left
    aside.

    Raises
    ------
    FileError
        If there is nothing to read, or a file is not of the type that its name implies.
    DescriptionError
        If names do not fit together, or something is used that is not supported.
    """
    path = given_path(path)
    check_exists(path)
    if path.suffix.lower() == ".fmu" and not path.is_dir():
        return _single(path, path.stem)
    if (path / "modelDescription.xml").is_file():
        return _single(path, path.name)
    return _described(path)


def _single(path: Path, name: str) -> SystemDescription:
    system = System(name, (Component(name, Source(path)),))
    return SystemDescription(system, source=path, is_single_fmu=True)


def _described(path: Path) -> SystemDescription:
    # a run of a single FMU needs none of the modules that read SSP
    from fmimaster.system import osp
    from fmimaster.system.ssp import SSD, find_ssd, read_ssd

    suffix = path.suffix.lower()
    if path.is_dir() and (path / osp.FILE).is_file():
        return osp.read_osp(path / osp.FILE)
    if path.is_dir() or suffix == ".ssp":
        return read_ssd(*find_ssd(path), path)
    if suffix == ".ssd":
        return read_ssd(Source(path), (), path)
    if path.match(osp.FILES):
        return osp.read_osp(path)
    raise FileError(
        f"'{path}' is not a system. Expected an SSP archive (.ssp), an SSD (.ssd), an FMU (.fmu), {osp.FILE}, "
        f"or a folder with {SSD}, {osp.FILE} or modelDescription.xml."
    )

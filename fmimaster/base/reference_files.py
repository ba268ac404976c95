"""The reference FMUs and systems that come with fmimaster."""

from __future__ import annotations

from pathlib import Path

from fmimaster.base.errors import FileError, did_you_mean

_FOLDER = Path(__file__).parent.parent / "reference"


def reference_path(name: str) -> Path:
    """Path of a reference FMU or system that comes with fmimaster.

    Parameters
    ----------
    name
        ``"fmi2/Dahlquist.fmu"``, ``"systems/two-mass-b1-fmi3.ssp"``; see the page Reference FMUs of the documentation.

    Returns
    -------
    pathlib.Path
        An existing file.

    Raises
    ------
    FileError
        If there is no file of that name, or the reference FMUs were not built because the C compiler was missing or
        failed at installation.
    """
    path = _FOLDER / name
    if path.is_file():
        return path
    known = reference_names()
    if not known:
        raise FileError(
            "The reference FMUs were not built, because the C compiler was missing or failed at installation. Install "
            "a C compiler that works, and install fmimaster again ('pip install -v' shows the output of the compiler)."
        )
    raise FileError(f"There is no reference file '{name}'.{did_you_mean(name, known)}")


def reference_names() -> list[str]:
    """Names of all reference FMUs and systems, for :func:`reference_path`."""
    return sorted(p.relative_to(_FOLDER).as_posix() for p in _FOLDER.glob("*/*.*"))

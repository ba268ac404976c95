"""What is installed: the version of fmimaster, libraries that only some features need, reference FMUs and systems."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fmimaster.base.errors import FileError, OptionError, did_you_mean

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


def optional(library: str, extra: str, purpose: str) -> Any:
    """Import an optional library.

    Parameters
    ----------
    library : str
        Name of the module, which is the name of the library as well: ``"pandas"``, ``"scipy.io"``.
    extra : str
        The extra of fmimaster that installs it.
    purpose : str
        The feature that needs it, as the subject of a sentence: ``"to_pandas()"``.

    Raises
    ------
    OptionError
        If it is not installed, or cannot be imported.
    """
    name = library.partition(".")[0]
    try:
        import_module(name)  # first: distinguishes a missing library from a missing module in it
        return import_module(library)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        why = "is not installed" if missing else f"cannot be imported ({error})"
        raise OptionError(
            f"{purpose} needs the library {name}, which {why}. Install it with:"
            f' pip install "fmimaster[{extra}]"'
        ) from error


def check_matplotlib(purpose: str) -> None:
    """Raise an error that names the extra, if matplotlib is not installed."""
    optional("matplotlib", "plot", purpose)


_VERSION = "Version: "


@lru_cache(maxsize=1)
def installed_version() -> str:
    """The version; ``"unknown"`` if fmimaster is not installed, but found on the path."""
    # as importlib.metadata finds it, which would take 30 ms of CPU time, a tenth of a short run
    for folder in map(Path, sys.path):
        for facts in (*folder.glob("fmimaster-*.dist-info/METADATA"), _of_sources(folder)):
            if facts.is_file():
                lines = facts.read_text(encoding="utf-8").splitlines()
                return next((t[len(_VERSION) :] for t in lines if t.startswith(_VERSION)), "")
    return "unknown"


def _of_sources(folder: Path) -> Path:
    """The metadata that an installation leaves in the folder with the sources."""
    return folder / "fmimaster.egg-info" / "PKG-INFO"


def __getattr__(name: str) -> str:
    """``__version__``, which ``fmimaster`` offers; the folders are only searched when it is used."""
    if name == "__version__":
        return installed_version()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

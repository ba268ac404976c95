"""Libraries that only some features need: imported where they are used; an error names the extra if one is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fmimaster.base.errors import OptionError


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


def drawing(purpose: str) -> None:
    """Raise an error that names the extra, if matplotlib is not installed."""
    optional("matplotlib", "plot", purpose)

"""Co-simulation of FMI 2.0 and 3.0 FMUs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmimaster.api import *  # noqa: F403

    __version__: str


def __getattr__(name: str) -> Any:
    """A public name, imported when it is used: so the command line can say that it was interrupted while it is imported."""
    if name == "__version__":
        return _version()
    api = import_module("fmimaster.api")
    return globals()[name] if name in globals() else getattr(api, name)  # modules are there now too


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", *import_module("fmimaster.api").__all__})


def _version() -> str:
    """Of the installed package, looked up when it is asked for."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("fmimaster")
    except PackageNotFoundError:
        return "(not installed)"

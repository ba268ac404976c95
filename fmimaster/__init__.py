"""Co-simulation of FMI 2.0 and 3.0 FMUs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmimaster.api import *  # noqa: F403

    __version__: str


def __getattr__(name: str) -> Any:
    """A public name, imported when it is used: so an interruption during the import ends with a message."""
    if name == "__version__":
        return import_module("fmimaster.base.version").installed_version()
    api = import_module("fmimaster.api")
    return globals()[name] if name in globals() else getattr(api, name)  # modules are there now too


def __dir__() -> list[str]:
    return sorted({*globals(), "__version__", *import_module("fmimaster.api").__all__})

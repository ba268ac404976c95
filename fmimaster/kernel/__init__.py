"""The native executor in C, and its build."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def kernel() -> Any:
    """The compiled module, with ``ffi`` and ``lib``; None if it was not built at installation."""
    try:
        return import_module("fmimaster.kernel._kernel")
    except ImportError:
        return None


SYSTEMS = Path(__file__).parent / "system"
"""The libraries of exported systems, in folders by platform; and their licence."""

LICENSE = "license.txt"


def system_libraries() -> Mapping[str, Path]:
    """Platform, as FMI 3.0 names it → the library of exported systems that was built for it."""
    return {path.parent.name: path for path in sorted(SYSTEMS.glob("*/fmimaster_system.*"))}

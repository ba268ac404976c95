"""The native executor in C, and its build."""

from functools import cache
from importlib import import_module
from typing import Any


@cache
def kernel() -> Any:
    """The compiled module, with ``ffi`` and ``lib``; None if it was not built at installation."""
    try:
        return import_module("fmimaster.kernel._kernel")
    except ImportError:
        return None

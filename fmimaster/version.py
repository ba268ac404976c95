"""The version of fmimaster that is installed."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1)
def installed_version() -> str:
    """The version; ``"unknown"`` if fmimaster is not installed, but found on the path."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("fmimaster")
    except PackageNotFoundError:
        return "unknown"

"""The version of fmimaster that is installed."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def installed_version() -> str:
    """The version; ``"unknown"`` if fmimaster is not installed, but found on the path."""
    for folder in map(Path, sys.path):
        if (folder / "fmimaster.egg-info").exists():
            break
        # the name of this folder has it: importlib.metadata would take 30 ms of CPU time, a tenth of a short run
        for found in folder.glob("fmimaster-*.dist-info"):
            return found.name.removeprefix("fmimaster-").removesuffix(".dist-info")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("fmimaster")
    except PackageNotFoundError:
        return "unknown"

"""The version of fmimaster that is installed."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

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

"""The folder of the user in which cards are kept, by the hashes of their FMUs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from fmimaster.base.errors import FileError
from fmimaster.base.installation import installed_version
from fmimaster.cards.card import FmuCard
from fmimaster.fmu.shared_library import FMI3
from fmimaster.system.declarations import Interface


def cards_folder() -> Path:
    """The folder: ``fmimaster/cards`` in ``$XDG_CACHE_HOME``, or in the folder that the system has for caches.

    Source: XDG Base Directory Specification; a relative path in the variable is ignored.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        base = given
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "fmimaster" / "cards"


def cached_card(sha256: str, interface: Interface | None) -> FmuCard | None:
    """The card of an FMU that was measured before on this platform by this version; None if there is none.

    Parameters
    ----------
    interface
        None for the default one of the FMU.
    """
    found = _known(_path(sha256, interface), sha256)
    if found is None and interface is not None:
        found = _known(_path(sha256, None), sha256)  # it may be the default one
        return found if found is not None and found.interface == interface.value else None
    return found


def keep(card: FmuCard, interface: Interface | None) -> None:
    """Keep a card; nothing happens if the folder cannot be written."""
    path = _path(card.sha256, interface)
    with suppress(OSError, FileError):
        path.parent.mkdir(parents=True, exist_ok=True)
        card.write(path)


def _known(path: Path, sha256: str) -> FmuCard | None:
    if not path.is_file():
        return None
    try:
        card = FmuCard.read(path)
    except FileError:  # damaged, or of another form: it is made again
        return None
    is_present = card.fmimaster == installed_version() and card.platform == FMI3
    return card if is_present and card.sha256 == sha256 else None


def _path(sha256: str, interface: Interface | None) -> Path:
    return cards_folder() / f"{sha256}-{'default' if interface is None else interface.value}.json"

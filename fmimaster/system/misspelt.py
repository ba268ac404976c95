"""Whether an unknown name is a known one with an error of spelling."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

NEAR = 0.75
"""Share of letters, as of difflib, from which a name is a misspelt one: of four letters, one is wrong."""


def meant(name: str, known: Iterable[str], near: float = NEAR) -> str | None:
    """The known name that is probably meant; None if none is near. Names that differ in case only come first.

    Parameters
    ----------
    near
        Share of letters that must be the same; long names that are built alike need more.

    Examples
    --------
    >>> meant("Conectors", ["Connectors", "Connections"])
    'Connectors'
    >>> meant("icon", ["Connectors", "Connections"])
    """
    known = list(known)
    folded = [other for other in known if other.lower() == name.lower()]
    found = folded or get_close_matches(name, known, n=1, cutoff=near)
    return found[0] if found else None

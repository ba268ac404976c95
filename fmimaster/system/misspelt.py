"""Whether an unknown name is a known one with an error of spelling."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_NEAR = 0.75
"""Share of letters, as of difflib, from which a name is a misspelt one: of four letters, one is wrong."""


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that is probably meant; None if none is near. Names that differ in case only come first.

    Examples
    --------
    >>> meant("Conectors", ["Connectors", "Connections"])
    'Connectors'
    >>> meant("icon", ["Connectors", "Connections"])
    """
    known = list(known)
    folded = [other for other in known if other.lower() == name.lower()]
    near = folded or get_close_matches(name, known, n=1, cutoff=_NEAR)
    return near[0] if near else None

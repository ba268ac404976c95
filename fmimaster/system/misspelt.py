"""Whether an unknown name is a known one with an error of spelling."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

NEAR = 0.75
"""Share of equal letters (as in difflib) from which a name is treated as misspelt: one of four letters is wrong."""


def meant(name: str, known: Iterable[str], near: float = NEAR) -> str | None:
    """The known name that is probably meant; None if none is similar. Names that differ only in case come first.

    Parameters
    ----------
    near
        Share of letters that must be equal; long names with a common structure need a larger one.

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

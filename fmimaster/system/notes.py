"""Many entries in one line, and names with an error of spelling."""

from __future__ import annotations

from collections.abc import Iterable

from fmimaster.base.errors import nearest
from fmimaster.base.text import count, listed

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
    found = nearest(name, known, near, by_tail=False)
    return found[0] if found else None


class Notes:
    """Notes for the user about decisions and ignored parts: entries of one kind make one line."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, str]]] = {}

    def add(self, what: str, entry: str = "", where: str = "") -> None:
        """Note one entry.

        Parameters
        ----------
        what
            The statement about all entries of this kind, without a full stop.
        entry
            The name of the entry; empty if the place is enough.
        where
            File and line.
        """
        self._found.setdefault(what, []).append((where, entry))

    def lines(self, most: int | None = None) -> tuple[str, ...]:
        """One sentence for each kind, in the order of their first entries; at most ``most`` sentences and a count of
        the others."""
        lines = tuple(_line(what, found) for what, found in self._found.items())
        if most is None or len(lines) <= most:
            return lines
        return (*lines[:most], there_are_more(len(lines) - most, "finding"))


def _line(what: str, found: list[tuple[str, str]]) -> str:
    where, others = found[0][0], len(found) - 1
    more = f" and {count(others, 'more place')}" if others else ""
    place = f"{where}{more}: " if where else ""
    entries = [entry for _, entry in found if entry]
    return f"{place}{what}{': ' if entries else ''}{listed(entries)}."


def there_are_more(number: int, what: str) -> str:
    """A sentence: ``"There are 2 more problems."``"""
    return f"There {'is' if number == 1 else 'are'} {count(number, f'more {what}')}."

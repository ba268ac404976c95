"""Trigger sequences as text: ``"nearest-neighbour"``, ``"controller, motor, load"``."""

from __future__ import annotations

from fmimaster.configure.named.text import plain_name
from fmimaster.sequences import METHODS


def sequence(text: str) -> str | tuple[str, ...]:
    """The name of a method, or names of components separated by commas.

    Examples
    --------
    >>> sequence("b, a")
    ('b', 'a')
    """
    method = next((name for name in METHODS if plain_name(name) == plain_name(text)), text)
    names = tuple(name.strip() for name in text.split(","))
    return names if len(names) > 1 else method

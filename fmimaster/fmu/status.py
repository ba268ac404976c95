"""The status of FMI functions, in the terms of the standards."""

from __future__ import annotations

OK, WARNING, DISCARD, ERROR, FATAL, PENDING = range(6)

SUCCESS = (OK, WARNING)
"""An FMU may return any number; all others are failures."""

_WORDS = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")
_COUNT = {"fmi2": 6, "fmi3": 5}
_MAY_DISCARD = frozenset(
    [
        "DoStep",
        "SetReal",
        "SetInteger",
        "SetBoolean",
        "SetString",
        "GetRealStatus",
        "GetBooleanStatus",
    ]
)
"""Functions that may return Discard in Co-Simulation of FMI 2.0 (2.1.3); in FMI 3.0 all functions may."""


def word_of(status: int) -> str:
    """The status of a message as a word, or its number."""
    return _WORDS[status] if 0 <= status < len(_WORDS) else str(status)


def status_name(prefix: str, status: int) -> str:
    """A status as the standard calls it, or its number; ``prefix`` is ``"fmi2"`` or ``"fmi3"``."""
    return f"{prefix}{_WORDS[status]}" if 0 <= status < _COUNT[prefix] else str(status)


def objection(prefix: str, function: str, status: int) -> str:
    """Why the standard does not allow a function, named without prefix, to return a status; empty if it does."""
    version = f"FMI {prefix[3:]}.0"
    if not 0 <= status < _COUNT[prefix]:
        return f", which is not a status of {version}"
    if status == PENDING and function == "DoStep":
        return ": it computes asynchronously, which is not supported"
    if status == PENDING or (
        prefix == "fmi2" and status == DISCARD and function not in _MAY_DISCARD
    ):
        return f", which {version} does not allow for this function"
    return ""

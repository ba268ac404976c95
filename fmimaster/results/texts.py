"""Values that are not numbers, as text."""

from __future__ import annotations


def as_text(value: object) -> str:
    """A text as it is, binaries in hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else str(value)

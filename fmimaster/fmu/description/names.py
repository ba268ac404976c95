"""Names of variables by the naming conventions of FMI (3.0, 2.4.7.5.1)."""

from __future__ import annotations

import re

_INDICES = r"(?:\[\d+(?:,\d+)*\])?"
_QUOTED = r"'(?:[\w!#$%&()*+,\-./:;<>=?@\[\]^{}|~ ]|\\['\"?\\abfnrtv])+'"
_PART = rf"(?:[a-zA-Z_]\w*|{_QUOTED}){_INDICES}"
_IDENTIFIER = rf"{_PART}(?:\.{_PART})*"
_STRUCTURED = re.compile(rf"{_IDENTIFIER}|der\({_IDENTIFIER}(?:,\d+)?\)", re.ASCII)
_FLAT = re.compile(r"[^\r\n\t]*")


def follows_convention(name: str, convention: str) -> bool:
    """Whether a variable may have this name by the naming convention of its model description."""
    form = _STRUCTURED if convention == "structured" else _FLAT
    return form.fullmatch(name) is not None

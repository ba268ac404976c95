"""The tool that has exported an FMU, and the version of that tool."""

from __future__ import annotations

import re

_GLUED = re.compile(r"(?<=[a-z]{2})(?=\d+\.\d+\.\d)")
"""Between the name and the version in ``Hopsan2.23.0``."""
_DIGITS = re.compile(r"\d+[a-z]*$|\d\.|\d{4}")
"""A word with a version: ``2016``, ``2023x``, ``v1.12.0``; ``20-sim`` is none."""
_TOOLS = ("OpenModelica", "Overture")
"""Tools that write their name in several ways."""
_AROUND = "(),;:[]-"
_NO_WORDS = ("version", "release")


def exporter_of(tool: str) -> tuple[str, str]:
    """Name and version from the attribute ``generationTool``.

    >>> exporter_of("Dymola Version 2016 (64-bit), 2015-04-14")
    ('Dymola', '2016')
    >>> exporter_of("Reference FMUs (v0.0.23)")
    ('Reference FMUs', '0.0.23')
    >>> exporter_of("Hopsan2.23.0.20250820.1508")
    ('Hopsan', '2.23.0.20250820.1508')
    >>> exporter_of("OpenModelica Compiler OMCompiler v1.18.0-dev")
    ('OpenModelica', '1.18.0-dev')
    >>> exporter_of("20-sim")
    ('20-sim', '')
    """
    name: list[str] = []
    for word in _GLUED.sub(" ", tool).split():
        bare = word.strip(_AROUND)
        if bare.lower() in _NO_WORDS:
            continue
        if name and _DIGITS.search(bare):
            return _tool(name), bare.removeprefix("v")
        if word.startswith("(") and name:
            break
        name += [bare] * bool(bare)
        if word != bare:
            break
    return _tool(name), ""


def _tool(words: list[str]) -> str:
    return words[0] if words and words[0] in _TOOLS else " ".join(words)

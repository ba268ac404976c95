"""Texts from outside (messages and names of FMUs, paths, cells) in a form that is safe to show.

It defines which characters must not reach a terminal, a log or a figure. Data files keep their texts unchanged.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, with escape and carriage return; but tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of text
    "\u2028\u2029"  # ends of lines for some
    "\ud800-\udfff"  # bytes of a path that are no UTF-8
    "]"
)
_NEXT_LINE = re.compile("\n(?! )")
"""Before a line that is not indented."""


def visible(text: str) -> str:
    r"""Text with control characters written as escapes, so that they have no effect; tabs and line feeds are kept.

    Examples
    --------
    >>> print(visible("pump\x1b[2J\r is \u202efine"))
    pump\x1b[2J\r is \u202efine
    """
    return _CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def in_a_line(text: str) -> str:
    """The same, with tabs and line feeds escaped too: for a cell of a table, a label, a name."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def indented(text: str) -> str:
    """The same, with its further lines indented: none looks like a message of its own."""
    return _NEXT_LINE.sub("\n    ", visible(text))


def visible_json(text: str) -> str:
    """JSON with the same content, in which control characters are escaped by the rules of JSON."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")

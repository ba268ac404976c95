"""Links in docstrings for the API reference: an extension of griffe (``mkdocstrings`` in mkdocs.yml).

Docstrings name other objects as Sphinx does, which editors and ``help()`` show as it stands: ``:class:`fmimaster.Results```
becomes a link to the object if the reference has it, and code otherwise.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|attr|data|mod|exc):`~?([\w.]+)`")


class DocstringLinks(griffe.Extension):
    """Replaces roles when an object has been read."""

    def __init__(self) -> None:
        from fmimaster.api import __all__ as names

        self._names = frozenset(names)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the roles of its docstring."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(self._link, obj.docstring.value)

    def _link(self, found: re.Match[str]) -> str:
        name = found[1].removeprefix("fmimaster.")
        first = name.partition(".")[0]
        shown = name if first in self._names else name.rpartition(".")[2]
        return f"[`{shown}`][fmimaster.{name}]" if name in self._names else f"`{shown}`"

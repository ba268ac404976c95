"""Docstrings for the API reference: an extension of griffe (``mkdocstrings`` in mkdocs.yml).

Docstrings name other objects as Sphinx does, which editors and ``help()`` show as it stands: ``:class:`fmimaster.Results```
becomes a link to the object if the reference has it, and code otherwise. A paragraph after a section, such as the source of
a formula, comes before the first section: griffe would take it for a parameter.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

PAGES = sorted((Path(__file__).parents[1] / "docs" / "api").glob("*.md"))

_OBJECT = re.compile(r"^::: (fmimaster[\w.]*)$", re.M)
_ROLE = re.compile(r":(?:class|func|meth|attr|data|mod|exc):`~?([\w.]+)`")
_UNDERLINE = re.compile(r"-{3,}")


class DocstringLinks(griffe.Extension):
    """Changes docstrings when an object has been read."""

    def __init__(self) -> None:
        pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        self._objects = {name.rpartition(".")[2]: name for name in _OBJECT.findall(pages)}

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change its docstring."""
        if obj.docstring:
            obj.docstring.value = prose_first(_ROLE.sub(self._link, obj.docstring.value))

    def on_alias_instance(self, *, alias: griffe.Alias, **_: Any) -> None:
        """Our data classes are for griffe what they are for type checkers."""
        if alias.target_path == "fmimaster.base.data.dataclass":
            alias.target_path = "dataclasses.dataclass"

    def _link(self, found: re.Match[str]) -> str:
        *_, shown = found[1].split(".")
        target = self._objects.get(shown)
        return f"[`{shown}`][{target}]" if target else f"`{shown}`"


def prose_first(docstring: str) -> str:
    """A docstring with its paragraphs before its sections; those of examples stay where they are."""
    prose: list[str] = []
    sections: list[str] = []
    section = ""
    for block in docstring.split("\n\n"):
        first, *others = block.split("\n")
        if others and _UNDERLINE.fullmatch(others[0]):
            section = first
        is_prose = section == "" or (
            section not in ("", "Examples", first)
            and not any(line.startswith(" ") for line in (first, *others))
        )
        (prose if is_prose else sections).append(block)
    return "\n\n".join([*prose, *sections])

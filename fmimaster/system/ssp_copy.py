"""Copies of an SSD or SSP with one more annotation of the root system; all other bytes stay the same."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from xml.parsers import expat

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import given_path, put_in_place, reason_of
from fmimaster.system.archive import open_archive, read_file
from fmimaster.system.model import Source
from fmimaster.system.ssp import find_ssd
from fmimaster.system.xml import parse_lenient_xml
from fmimaster.system.zip_entries import DAMAGE

_COMMON = "http://ssp-standard.org/SSP1/SystemStructureCommon"
"""Namespace of Annotation, in SSP 1.0 and 2.0."""
_INDENT = "  "
_SYSTEM = ("System",)
_ANNOTATIONS = (*_SYSTEM, "Annotations")
_ANNOTATION = (*_ANNOTATIONS, "Annotation")
"""Paths of elements below the root, by local names."""


def copy_with_annotation(
    path: str | os.PathLike[str], output: str | os.PathLike[str], kind: str, element: str
) -> Path:
    """Copy a system with an annotation of its root system. One of the same type is replaced.

    Parameters
    ----------
    path
        An SSP, an SSD, or a folder with one.
    output
        The file to be written: an archive if ``path`` is one, otherwise the SSD alone. The paths in an SSD are relative
        to its folder.
    kind, element
        Type of the annotation, and the element in it, without undeclared prefixes.

    Returns
    -------
    ``output`` as a path.

    Raises
    ------
    FileError
        If ``path`` cannot be read or is no SSP or SSD, or ``output`` is the same file, has another suffix, or cannot be
        written.
    """
    ssd, output = check_copy(path, output), given_path(output)
    text = annotated(read_file(ssd), str(ssd), kind, element)
    part = output.with_name(f"{output.name}.part{output.suffix}")
    try:
        if ssd.member:
            _copy_archive(ssd, part, text)
        else:
            part.write_bytes(text)
        put_in_place(part, output)
    except DAMAGE as error:
        raise FileError(
            f"'{output}' cannot be written: {reason_of(error)}. Choose another place."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return output


def check_copy(path: str | os.PathLike[str], output: str | os.PathLike[str]) -> Source:
    """The SSD of a system, if a copy of it can have the name ``output``.

    Raises
    ------
    FileError
        If not, as for :func:`copy_with_annotation`.
    """
    path, output = given_path(path), given_path(output)
    ssd = _ssd_of(path)
    suffix = ".ssp" if ssd.member else ".ssd"
    if output.suffix.lower() != suffix:
        raise FileError(
            f"'{output}' would be a copy of '{ssd}'. Expected a name that ends with {suffix}."
        )
    if output.exists() and any(output.samefile(p) for p in (path, ssd.path)):
        raise FileError(f"'{output}' is the system itself. Choose another name for the copy.")
    return ssd


def _ssd_of(path: Path) -> Source:
    if path.is_dir() or path.suffix.lower() == ".ssp":
        return find_ssd(path)[0]
    if path.suffix.lower() == ".ssd":
        return Source(path)
    raise FileError(
        f"'{path}' is not a system that can hold an annotation. Expected an SSP or SSD."
    )


def _copy_archive(ssd: Source, output: Path, text: bytes) -> None:
    """Copy each entry unchanged, except one."""
    with (
        open_archive(Source(ssd.path)),  # refuses unsafe files, and files that are not archives
        zipfile.ZipFile(ssd.path) as before,
        zipfile.ZipFile(output, "w") as after,
    ):
        after.comment = before.comment
        for info in before.infolist():
            if info.filename == ssd.member:
                after.writestr(info, text)
            else:
                with before.open(info) as read, after.open(info, "w") as written:
                    shutil.copyfileobj(read, written)


def annotated(text: bytes, where: str, kind: str, element: str) -> bytes:
    """An SSD as a file, with the annotation in it.

    Raises
    ------
    FileError
        If the SSD is malformed, has no system, or an encoding that cannot be written.
    """
    parse_lenient_xml(text, where)  # refuses document types, and malformed or too large documents
    places = _Places(text, kind)
    try:
        places.parser.Parse(text, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise FileError(f"{where}: {error}. Write it in UTF-8.") from error
    if places.system is None or places.system.end_tag is None:
        raise FileError(f"{where}: it has no element System, or an empty one.")
    inside = [
        f'<ssc:Annotation xmlns:ssc="{_COMMON}" type="{kind}">',
        *(_INDENT + line for line in element.rstrip("\n").split("\n")),
        "</ssc:Annotation>",
    ]
    prefix = places.prefix
    around = [f"<{prefix}Annotations>", *(_INDENT + i for i in inside), f"</{prefix}Annotations>"]
    if places.annotation is not None:
        return places.replaced(places.annotation, inside)
    if places.annotations is None:
        return places.inserted(places.system.end_tag, around)
    if places.annotations.end_tag is None:
        return places.replaced(places.annotations, around)
    return places.inserted(places.annotations.end_tag, inside)


@dataclass(slots=True)
class _Element:
    """Position of an element in the text, in bytes."""

    name: str
    """Without its prefix."""
    begin: int
    is_ours: bool
    """Whether it has the type of the annotation."""
    is_empty: bool = True
    """Whether it contains no element."""
    end_tag: int | None = None
    """Where its end tag begins, if it has one."""
    end: int = 0


class _Places:
    """Positions in an SSD, in bytes, at which something can be inserted, and the prefix to use.

    Attributes
    ----------
    prefix : str
        Of the root system's tag, with its colon.
    system, annotations, annotation : _Element or None
        The root system, its first Annotations, and the first Annotation of the type in it.
    """

    def __init__(self, text: bytes, kind: str) -> None:
        self.prefix = ""
        self.system: _Element | None = None
        self.annotations: _Element | None = None
        self.annotation: _Element | None = None
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.XmlDeclHandler = self._declaration
        self._text, self._kind = text, kind
        self._encoding = _encoding_by_first_bytes(text)
        self._open: list[_Element] = []
        """Elements around the present place."""

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and not encoding.lower().startswith("utf-16"):
            self._encoding = encoding

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        prefix, _, name = tag.rpartition(":")
        if len(self._open) == 1 and name == "System" and self.system is None:
            self.prefix = f"{prefix}:" if prefix else ""
        if self._open:
            self._open[-1].is_empty = False
        ours = attributes.get("type") == self._kind
        self._open.append(_Element(name, self.parser.CurrentByteIndex, ours))

    def _end(self, tag: str) -> None:
        del tag
        path = tuple(e.name for e in self._open[1:])
        element, end = self._open.pop(), self.parser.CurrentByteIndex
        # for a tag without an end tag, this is the position after it
        lone = element.is_empty and self._text.endswith(self._bytes("/>"), 0, end)
        element.end_tag = None if lone else end
        element.end = (
            end if lone else self._text.index(self._bytes(">"), end) + len(self._bytes(">"))
        )
        if self.system is not None:  # a second System, or what follows the first one
            return
        if path == _SYSTEM:
            self.system = element
        elif path == _ANNOTATIONS and self.annotations is None:
            self.annotations = element
        elif path == _ANNOTATION and element.is_ours and self.annotation is None:
            self.annotation = element

    def inserted(self, place: int, lines: list[str]) -> bytes:
        """The text with these lines inserted before an end tag, indented more than the tag."""
        newline, indent = self._newline(), self._indent(place)
        added = _INDENT + f"{newline}{indent}{_INDENT}".join(lines) + newline + indent
        return self._text[:place] + self._bytes(added) + self._text[place:]

    def replaced(self, element: _Element, lines: list[str]) -> bytes:
        """The text with these lines instead of an element."""
        added = f"{self._newline()}{self._indent(element.begin)}".join(lines)
        return self._text[: element.begin] + self._bytes(added) + self._text[element.end :]

    def _newline(self) -> str:
        return "\r\n" if self._bytes("\r\n") in self._text else "\n"

    def _indent(self, place: int) -> str:
        """The text before a position in its line, if it consists only of blanks."""
        line = self._text[:place].decode(self._encoding).rpartition("\n")[2]
        return line if not line.strip(" \t") else ""

    def _bytes(self, text: str) -> bytes:
        return text.encode(self._encoding, "xmlcharrefreplace")


def _encoding_by_first_bytes(text: bytes) -> str:
    """The encoding of a file without a declaration of it (XML 1.0, appendix F)."""
    if text.startswith((b"\xff\xfe", b"<\0")):
        return "utf-16-le"
    if text.startswith((b"\xfe\xff", b"\0<")):
        return "utf-16-be"
    return "utf-8"

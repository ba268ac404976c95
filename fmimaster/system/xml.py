"""XML that is read safely: no network, no document type, no entities.

Elements and attributes are found by their local names: files of many tools use undeclared prefixes, and in the formats
read here a local name has the same meaning everywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from lxml import etree  # type: ignore[import-untyped,unused-ignore]

from fmimaster.base.errors import FileError
from fmimaster.base.files import check_size

_MOST_MARKUP = 20_000_000
"""Most elements and attributes of a document, with about 200 bytes each: enough for a million variables."""

_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}
T = TypeVar("T")
D = TypeVar("D")

_TRUTH = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?|[+-]?(nan|inf|infinity)", re.ASCII | re.I
)
_DECIMAL = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)


def as_written(kind: Callable[[str], T], form: re.Pattern[str]) -> Callable[[str], T]:
    """A value of a text that has this form, otherwise a ValueError.

    Python accepts numbers that XML does not, such as 1_000; an exact 1e999999999 would fill the memory.
    """

    def parse(text: str) -> T:
        if form.fullmatch(text) is None:
            raise ValueError
        return kind(text)

    return parse


_KINDS: dict[type, tuple[Callable[[str], Any], str]] = {
    float: (as_written(float, _NUMBER), "a number"),
    Fraction: (as_written(Fraction, _DECIMAL), "a number"),
    int: (as_written(int, _INTEGER), "a whole number"),
    bool: (_TRUTH.__getitem__, "true or false"),
    bytes: (bytes.fromhex, "hexadecimal digits"),
}


class Element(Protocol):
    """The part of an lxml element that is used."""

    tag: str
    base: str
    """Name of the file, as given to :func:`parse_xml`."""
    sourceline: int
    text: str | None
    """Text before the first element inside."""
    tail: str | None
    """Text after this element."""

    def get(self, name: str) -> str | None:
        """Value of an attribute, None if it is not there."""

    @property
    def attrib(self) -> Mapping[str, str]:
        """Attributes by name."""
        ...

    def items(self) -> list[tuple[str, str]]:
        """Name and value of each attribute."""
        ...

    def __len__(self) -> int:
        """Number of elements directly below."""
        ...

    def iter(self) -> Iterator[Element]:
        """This element and all below it."""
        ...

    def __iter__(self) -> Iterator[Element]:
        """Elements directly below."""
        ...


def parse_xml(text: bytes, where: str) -> Element:
    """Root of a well-formed document without document type.

    Parameters
    ----------
    where : str
        Name of the file, for messages.

    Raises
    ------
    FileError
        If the document is malformed (the message has file, line and column), too large, or has a document type, whose
        entities could access other files or grow without bound.
    """
    root, errors = _parse(text, where)
    if root is None:
        raise _malformed(errors[0], where)
    return root


def parse_lenient_xml(text: bytes, where: str) -> tuple[Element, tuple[str, ...]]:
    """Like :func:`parse_xml`, but undeclared prefixes are allowed.

    Returns
    -------
    Root, and a note for each prefix that is not declared. The tag of such an element is
    ``prefix:name``.
    """
    root, errors = _parse(text, where)
    if root is not None:
        return root, ()
    undeclared = [e for e in errors if e.type == etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE]
    others = [e for e in errors if e not in undeclared]
    if others:
        raise _malformed(others[0], where)
    first: dict[str, int] = {}
    for (
        error
    ) in undeclared:  # the message of libxml2 is "Namespace prefix osp on Algorithm is not defined"
        first.setdefault(error.message.split()[2], error.line)
    notes = tuple(
        f"{where}, line {line}: prefix '{prefix}' is not declared; its elements are read by their "
        "names alone."
        for prefix, line in first.items()
    )
    parser = etree.XMLParser(recover=True, **_OPTIONS)
    return _named(etree.fromstring(text, parser), where), notes


class _Prolog:
    """Reads up to the first element, and refuses a document type before it."""

    def __init__(self, where: str) -> None:
        self.where = where

    def doctype(self, *_: str | None) -> None:
        raise FileError(
            f"{self.where}: the document has a document type (<!DOCTYPE ...>). Expected none, "
            "because its entities could access other files. Remove the DOCTYPE line."
        )

    def start(self, *_: Any) -> None:
        raise StopIteration

    def close(self) -> None:
        """The end, without any element; the parser itself reports it."""


def _parse(text: bytes, where: str) -> tuple[Element | None, list[Any]]:
    """Root, or None and the parser's errors."""
    check_size(len(text), where)
    if (markup := text.count(b"<") + text.count(b"=")) > _MOST_MARKUP:
        raise FileError(
            f"{where}: the document has some {markup:,} elements and attributes, at most {_MOST_MARKUP:,} are read. Check "
            "that it is what it should be."
        )
    with suppress(StopIteration, etree.XMLSyntaxError):  # malformed XML is reported below
        prolog: Any = _Prolog(where)
        etree.fromstring(text, etree.XMLParser(target=prolog, **_OPTIONS))
    parser = etree.XMLParser(**_OPTIONS)
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError:
        return None, list(parser.error_log.filter_from_errors())
    return _named(root, where), []


def _named(root: Any, where: str) -> Element:
    """The document with its name as given. As ``base_url``, lxml makes an address of a path with backslashes."""
    root.getroottree().docinfo.URL = where
    named: Element = root
    return named


def _malformed(error: Any, where: str) -> FileError:
    what = error.message.partition("\n")[0].strip(" !")  # older versions show the bytes behind it
    return FileError(f"{where}, line {error.line}, column {error.column}: malformed XML, {what}.")


def location(element: Element) -> str:
    """File and line of an element, for messages."""
    return f"{element.base}, line {element.sourceline}"


def local_name(element: Element) -> str:
    """Tag without namespace or prefix."""
    return _without_prefix(element.tag)


@lru_cache(maxsize=1000)
def _without_prefix(tag: str) -> str:
    return tag.rpartition("}")[2].rpartition(":")[2]


def children(element: Element | None, *path: str) -> Iterator[Element]:
    """All elements at a path of local names below an element; none if the element is None."""
    if element is None:
        return
    *above, name = path
    parents = [element]
    for part in above:
        parents = [c for parent in parents for c in parent if _without_prefix(c.tag) == part]
    for parent in parents:
        for child in parent:
            if _without_prefix(child.tag) == name:
                yield child


def child(element: Element | None, *path: str) -> Element | None:
    """First element at a path of local names; None if there is none."""
    return next(children(element, *path), None)


def text_of(element: Element, name: str) -> str:
    """Value of an attribute that must be there and not be empty."""
    value = element.get(name)
    if not value:
        state = "is missing" if value is None else "is empty"
        raise FileError(f"{location(element)}: attribute '{name}' of {label(element)} {state}.")
    return value


def value_of(element: Element, name: str, kind: type[T], default: D) -> T | D:
    """Value of an attribute as a ``float``, ``Fraction``, ``int``, ``bool``, or ``bytes`` (hexadecimal).

    The default if the attribute is missing.
    """
    text = element.get(name)
    return default if text is None else parse_text(element, name, kind, text)


def parse_text(element: Element, name: str, kind: type[T], text: str) -> T:
    """A value from the text of an attribute, or from a part of it."""
    parse, words = _KINDS[kind]
    try:
        value: T = parse(text.strip())
    except (ValueError, KeyError):
        raise FileError(
            f"{location(element)}: attribute '{name}' of {label(element)} is {shown(text)}, expected "
            f"{words}."
        ) from None
    return value


def label(element: Element) -> str:
    """Local name of an element, with its attribute ``name``, for messages."""
    name = element.get("name")
    return local_name(element) + (f" '{name}'" if name else "")


def quoted(text: str) -> str:
    """A value for an attribute that is written, in quotes."""
    from xml.sax.saxutils import quoteattr  # it imports the HTTP modules

    return quoteattr(text)


def shown(text: str | None, most: int = 60) -> str:
    """A text in quotes; only the beginning of a long text."""
    text = text or ""
    return repr(text if len(text) <= most else text[:most] + " ...")


def path_of_uri(uri: str) -> str:
    """The path in a URI of the scheme ``file``; on Windows it may name a machine and its shared folder."""
    from urllib.request import url2pathname  # it imports the HTTP modules

    place = urlsplit(uri)
    is_shared = sys.platform == "win32" and place.netloc not in ("", "localhost")
    path = url2pathname(f"//{place.netloc}{place.path}" if is_shared else place.path)
    return Path(path).as_posix()

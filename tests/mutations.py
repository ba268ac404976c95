"""Strategies of hypothesis for hostile inputs: real documents of ours, with a few edits.

::

    @given(document=edited_xml([b"<a/>", ...]))     # still well-formed
    @given(document=edited_bytes([b"PK...", ...]))  # any file
    @given(document=edited_json(lambda: "{}"))      # still JSON
    @given(text=hostile_text())                     # one value
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped,unused-ignore]

NUMBERS = (
    *("0", "-0", "1", "-1", "2", "3", "255", "65536", "0.1", "1.5", "1e-9", "-1e-9", "100000000"),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "18446744073709551616", "9" * 5000),
    *("1e308", "1e309", "1e400", "-1e400", "1e-400", "1e999999999", "NaN", "nan", "INF", "-INF"),
    *("inf", "Infinity", "0x10", "1_000", "1,5", "1/0", "1/3", "١٢", "1 2", "1 " * 5000, "+1"),
)
"""Numbers, and what some readers take for one."""

TEXTS = (
    *("", " ", "true", "false", "True", "maybe", "None", "x" * 100_000, "a b", "a.b", "a[1]", "'"),
    *('"', "<a/>", "&amp;", "%s%n", "{0}", "a\nb", "\t", "\x85", "é", "🙂", "\u202eabc", "\ufeff"),
    *(
        "../../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "C:\\x",
        "file:///etc/passwd",
        "http://a/",
        "~",
        "-",
    ),
)
"""Texts that are of another type, very long, structured, or paths."""


def hostile_text() -> st.SearchStrategy[str]:
    """A number at the edge of its range, an odd text, or any text."""
    return st.one_of(st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.text(max_size=20))


class _Documents(tuple[bytes, ...]):
    """They are not printed: hypothesis would spend more time on that than on searching."""

    def __repr__(self) -> str:
        return f"{len(self)} documents"


def edited_xml(documents: Sequence[bytes], *, edits: int = 3) -> st.SearchStrategy[bytes]:
    """One of the documents, well-formed, with some elements and attributes dropped, doubled, moved or changed."""
    return _edited_xml(_Documents(documents), edits)


def edited_bytes(documents: Sequence[bytes], *, edits: int = 3) -> st.SearchStrategy[bytes]:
    """One of the documents, with some of its bytes dropped, doubled, moved or changed."""
    return _edited_bytes(_Documents(documents), edits)


def edited_json(document: Callable[[], str | bytes]) -> st.SearchStrategy[bytes]:
    """A document of JSON in which some values are of another type, in another place, or missing."""
    return _edited_json(document)


@st.composite
def _edited_json(draw: st.DrawFn, document: Callable[[], str | bytes]) -> bytes:
    whole = json.loads(document())
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(whole))
        if not places:
            break
        place, key = draw(st.sampled_from(places))
        if draw(st.booleans()) and isinstance(place, dict):
            place.pop(key, None)
            continue
        other, where = draw(st.sampled_from(places))
        new = st.one_of(
            *(st.none(), st.booleans(), st.integers(), st.floats(), hostile_text()),
            *(st.sampled_from(_OTHERS), st.just(other[where])),
        )
        place[key] = deepcopy(draw(new))  # nothing is in two places, or in itself
    return json.dumps(whole).encode(errors="surrogatepass")


_OTHERS: tuple[Any, ...] = (
    *([], {}, [[]], [None], 10**400),
    *({"float": "inf"}, {"float": []}, {"tuple": []}, {"fraction": "1e9999999"}, {"bytes": 0}),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a document: a container and the key in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


@st.composite
def _edited_xml(draw: st.DrawFn, documents: Sequence[bytes], edits: int) -> bytes:
    root: Any = etree.fromstring(documents[draw(st.integers(0, len(documents) - 1))])
    for _ in range(draw(st.integers(1, edits))):
        # an exact edit: elements of one kind are many, and kinds are few
        kinds: dict[str, list[Any]] = {}
        for element in root.iter(etree.Element):
            kinds.setdefault(element.tag, []).append(element)
        edit = draw(st.sampled_from(_EDITS))
        element = draw(st.sampled_from(kinds[draw(st.sampled_from(list(kinds)))]))
        other = draw(st.sampled_from(kinds[draw(st.sampled_from(list(kinds)))]))
        note(f"{edit.__name__[1:]} {element.tag} {element.get('name')!r}, {other.tag}")
        edit(draw, element, other)
    written: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    return written


@st.composite
def _edited_bytes(draw: st.DrawFn, documents: Sequence[bytes], edits: int) -> bytes:
    document = bytearray(documents[draw(st.integers(0, len(documents) - 1))])
    for _ in range(draw(st.integers(1, edits))):
        start = draw(st.integers(0, len(document)))
        end = draw(
            st.integers(start, min(len(document), start + draw(st.sampled_from((1, 8, 999)))))
        )
        part = bytes(document[start:end])
        new = st.one_of(
            st.just(b""),
            st.just(part * 2),
            st.binary(min_size=len(part), max_size=len(part)),
            st.sampled_from(
                (b"\0", b"\xff" * 4, b"\xff" * 8, b"\r\n", b"\x1b[2J", b"\xef\xbb\xbf")
            ),
            hostile_text().map(lambda text: text.encode(errors="surrogatepass")),
        )
        document[start:end] = draw(new)
        if draw(st.integers(0, 9)) == 9:
            del document[draw(st.integers(0, len(document))) :]
    return bytes(document)


def _drop(_: st.DrawFn, element: Any, __: Any) -> None:
    if (parent := element.getparent()) is not None:
        parent.remove(element)


def _double(_: st.DrawFn, element: Any, __: Any) -> None:
    if (parent := element.getparent()) is not None:
        parent.insert(parent.index(element), _copy(element))


def _move(_: st.DrawFn, element: Any, other: Any) -> None:
    other.append(_copy(element))
    _drop(_, element, other)


def _rename(_: st.DrawFn, element: Any, other: Any) -> None:
    element.tag = other.tag


def _drop_attribute(draw: st.DrawFn, element: Any, _: Any) -> None:
    if element.attrib:
        del element.attrib[draw(st.sampled_from(list(element.attrib)))]


def _change_attribute(draw: st.DrawFn, element: Any, _: Any) -> None:
    if element.attrib:
        name = draw(st.sampled_from(list(element.attrib)))
        _set(element, name, draw(hostile_text()))


def _copy_attribute(draw: st.DrawFn, element: Any, other: Any) -> None:
    if other.attrib:
        name = draw(st.sampled_from(list(other.attrib)))
        _set(element, name, other.get(name))


def _copy_value(draw: st.DrawFn, element: Any, other: Any) -> None:
    """The value of an attribute from one of the same name in the document, or from any other one."""
    if element.attrib:
        name = draw(st.sampled_from(list(element.attrib)))
        same = [e.get(name) for e in element.getroottree().iter(element.tag) if e.get(name)]
        _set(element, name, draw(st.sampled_from([*same, *other.attrib.values()] or [""])))


def _change_text(draw: st.DrawFn, element: Any, _: Any) -> None:
    try:
        element.text = draw(hostile_text())
    except ValueError:
        element.text = ""


_EDITS = (
    _change_attribute,
    _copy_value,
    _copy_attribute,
    _drop_attribute,
    _drop,
    _double,
    _move,
    _rename,
    _change_text,
)


def _copy(element: Any) -> Any:
    return etree.fromstring(etree.tostring(element, with_tail=False))


def _set(element: Any, name: str, value: str) -> None:
    try:
        element.set(name, value)
    except ValueError:  # a character that XML cannot have
        element.set(name, "")

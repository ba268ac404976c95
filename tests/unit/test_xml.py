"""XML is read without any trust in it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from fmimaster.base.errors import FileError
from fmimaster.system.xml import (
    child,
    children,
    local_name,
    location,
    parse_lenient_xml,
    parse_text,
    parse_xml,
    text_of,
    value_of,
)

UNDECLARED = b"""<a>
  <osp:b size="1"><osp:c/></osp:b>
  <b x:size="2"/>
</a>"""


# Safety -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_document_type_is_refused_in_any_encoding(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE a>\n<a/>'.encode(encoding)
    for parse in (parse_xml, parse_lenient_xml):
        with pytest.raises(
            FileError, match=r"s\.ssd: the document has a document type .* Remove the DOCTYPE"
        ):
            parse(text, "s.ssd")


def test_entities_that_read_files_or_grow_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    growing = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(30))
    for subset in (
        f'<!ENTITY e SYSTEM "{secret.as_uri()}">',
        f'<!ENTITY % e SYSTEM "{secret.as_uri()}"> %e;',
        f'<!ENTITY e0 "ha">{growing}<!ENTITY e "&e30;">',
    ):
        with pytest.raises(FileError, match="document type"):
            parse_xml(f'<!DOCTYPE a [{subset}]>\n<a b="&e;">&e;</a>'.encode(), "s.ssd")


def test_the_word_doctype_in_a_comment_is_no_document_type() -> None:
    assert local_name(parse_xml(b"<!-- <!DOCTYPE a> --><a/>", "s.ssd")) == "a"


# Malformed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"s\.ssd, line 1, column 1: malformed XML, Document is empty"),
        (b"hello", r"line 1, column 1: .*Start tag expected"),
        (b"<a>\n<b>\n</a>", r"s\.ssd, line 3, column \d+: .*tag mismatch: b line 2 and a"),
        (b'<a b="1" b="2"/>', r"Attribute b redefined"),
        (b"<a>&x;</a>", r"Entity 'x' not defined"),
        (b"<a>\xff</a>", r"Invalid bytes in character encoding|not proper UTF-8"),
    ],
)
def test_malformed_xml_is_told_with_line_and_column(text: bytes, message: str) -> None:
    for parse in (parse_xml, parse_lenient_xml):
        with pytest.raises(FileError, match=message):
            parse(text, "s.ssd")


@pytest.mark.parametrize(
    "where", ["C:\\a b\\ä%20.fmu/x.xml", "\\\\server\\a.ssp", "/tmp/a b/x.xml"]
)
def test_the_place_is_told_as_given(where: str) -> None:
    """As the base of a document, lxml makes an address of a path of Windows: file:/C:/a%20b/…"""
    for root in (parse_xml(b"<a>\n<b/></a>", where), parse_lenient_xml(b"<a>\n<b/></a>", where)[0]):
        assert [location(e) for e in root.iter()] == [f"{where}, line 1", f"{where}, line 2"]


def test_an_undeclared_prefix_is_malformed_unless_leniently_read() -> None:
    with pytest.raises(FileError, match=r"line 2, .*Namespace prefix osp on b is not defined"):
        parse_xml(UNDECLARED, "s.ssd")


def test_undeclared_prefixes_are_read_by_local_names_with_a_note_each() -> None:
    root, notes = parse_lenient_xml(UNDECLARED, "s.ssd")
    assert [local_name(e) for e in root.iter()] == ["a", "b", "c", "b"]
    assert notes == (
        "s.ssd, line 2: prefix 'osp' is not declared; its elements are read by their names alone.",
        "s.ssd, line 3: prefix 'x' is not declared; its elements are read by their names alone.",
    )


def test_leniency_ends_at_undeclared_prefixes() -> None:
    with pytest.raises(FileError, match=r"line 4, .*tag mismatch"):
        parse_lenient_xml(UNDECLARED.replace(b"</a>", b"</e>"), "s.ssd")


def test_a_clean_document_has_no_notes() -> None:
    assert parse_lenient_xml(b'<x:a xmlns:x="urn:x"/>', "s.ssd")[1] == ()


# Elements -----------------------------------------------------------------------------------------


def test_elements_are_found_by_local_names_at_every_step() -> None:
    root = parse_xml(
        b'<a xmlns:n="urn:n"><b><n:c i="1"/></b><!-- no --><n:b><c i="2"/><d/></n:b></a>', "s"
    )
    assert [e.get("i") for e in children(root, "b", "c")] == ["1", "2"]
    assert child(root, "b", "x") is None
    assert child(None, "b") is None


def test_an_element_knows_its_file_and_line() -> None:
    root = parse_xml(b"<a>\n <b/>\n</a>", "/tmp/\u00fc b 100%/x.ssp/s.ssd")
    assert location(root) == "/tmp/\u00fc b 100%/x.ssp/s.ssd, line 1"
    assert [location(b) for b in root] == ["/tmp/\u00fc b 100%/x.ssp/s.ssd, line 2"]


# Attributes ---------------------------------------------------------------------------------------


def test_attributes_are_read_as_their_type() -> None:
    root = parse_xml(b'<a f=" 1e-3" n="INF" i="-7" t="true" o="0" T="True" h="00fF"/>', "s")
    assert value_of(root, "f", float, None) == 1e-3
    assert value_of(root, "n", float, None) == float("inf")
    assert value_of(root, "i", int, None) == -7
    assert value_of(root, "t", bool, None) is True
    assert value_of(root, "o", bool, None) is False
    assert value_of(root, "T", bool, None) is True
    assert value_of(root, "h", bytes, None) == b"\x00\xff"
    assert value_of(root, "missing", float, 2.5) == 2.5


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (float, "0,5", "a number"),
        (int, "3.5", "a whole number"),
        (bool, "yes", "true or false"),
        (bytes, "xy", "hexadecimal digits"),
    ],
)
def test_an_attribute_of_another_type_is_told_with_file_and_line(
    kind: type, text: str, expected: str
) -> None:
    root = parse_xml(f"<a>\n<Item name='x' v='{text}'/></a>".encode(), "s.ssd")
    message = rf"s\.ssd, line 2: attribute 'v' of Item 'x' is '{text}', expected {expected}\."
    with pytest.raises(FileError, match=message):
        value_of(next(iter(root)), "v", kind, None)
    with pytest.raises(FileError, match=message):
        parse_text(next(iter(root)), "v", kind, text)


def test_a_missing_or_empty_attribute_is_told() -> None:
    root = parse_xml(b"<Item name=''/>", "s.ssd")
    with pytest.raises(FileError, match=r"s\.ssd, line 1: attribute 'source' of Item is missing"):
        text_of(root, "source")
    with pytest.raises(FileError, match="attribute 'name' of Item is empty"):
        text_of(root, "name")


@pytest.mark.parametrize("text", ["1_000", "١", "0x10", "1e", "", "1,5", "1 2", "9" * 21])
def test_what_only_python_takes_for_a_number_is_none(text: str) -> None:
    element = parse_xml(f'<a x="{text}"/>'.encode(), "s.ssd")
    for kind in (float, Fraction, int):
        if (kind, text) not in ((float, "9" * 21), (Fraction, "9" * 21)):
            with pytest.raises(FileError, match=r"attribute 'x' of a is '.*', expected a"):
                value_of(element, "x", kind, None)


def test_an_exact_number_without_bounds_is_refused_and_not_computed() -> None:
    element = parse_xml(b'<a x="1e999999999"/>', "s.ssd")
    with pytest.raises(FileError, match=r"is '1e999999999', expected a number\."):
        value_of(element, "x", Fraction, None)


def test_a_long_wrong_value_is_cut_in_its_message() -> None:
    element = parse_xml(b'<a x="' + b"x" * 100_000 + b'"/>', "s.ssd")
    with pytest.raises(FileError, match=r"is 'x{60} \.\.\.', expected a number\."):
        value_of(element, "x", float, None)


# Sizes ------------------------------------------------------------------------------------------------------------


def test_a_document_with_very_many_elements_is_refused_and_not_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fmimaster.system.xml._MOST_MARKUP", 1000)
    assert len(list(parse_xml(b"<a>" + b"<b/>" * 998 + b"</a>", "s.ssd"))) == 998
    with pytest.raises(FileError, match=r"s\.ssd: the document has some 1,001 elements and attr"):
        parse_xml(b"<a>" + b"<b/>" * 999 + b"</a>", "s.ssd")


def test_a_document_that_is_too_large_is_refused_and_not_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fmimaster.base.files.MOST_IN_MEMORY", 1000)
    with pytest.raises(FileError, match=r"'s\.ssd' has more than 1,000 bytes"):
        parse_xml(b"<a>" + b" " * 1000 + b"</a>", "s.ssd")

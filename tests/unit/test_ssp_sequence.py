"""The trigger sequence of an SSD: read, and written into a copy of which nothing else changes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import fmpy
import pytest
from lxml import etree
from ssd_text import annotated as with_annotations
from ssd_text import component, elements, read, ssd

from fmimaster import reference_path
from fmimaster.base.errors import FileError
from fmimaster.system.read import read_system
from fmimaster.system.ssp_annotations import SEQUENCE, write_sequence
from fmimaster.system.ssp_copy import annotated, copy_with_annotation

TWO = elements(component("a"), component("b"))
OTHER = '<ssc:Annotation type="com.example"><x/></ssc:Annotation>'


def with_sequence(text: str, *names: str, encoding: str = "utf-8") -> bytes:
    return annotated(text.encode(encoding), "s.ssd", SEQUENCE.type, write_sequence(names))


def sequence_of(folder: Path, text: bytes) -> tuple[str, ...]:
    (folder / "s.ssd").write_bytes(text)
    return read_system(folder / "s.ssd").sequence


def test_a_description_without_an_annotation_leaves_the_sequence_open(tmp_path: Path) -> None:
    assert read(tmp_path, ssd(TWO)).sequence == ()


@pytest.mark.parametrize(
    "inside",
    [
        TWO,
        TWO + with_annotations(OTHER),
        TWO + "<ssd:Annotations></ssd:Annotations>",
        TWO + "<ssd:Annotations/>",
        TWO + "\n  <ssd:Annotations>\n  </ssd:Annotations>",
    ],
)
def test_a_sequence_that_is_written_is_read_again(tmp_path: Path, inside: str) -> None:
    text = with_sequence(ssd(inside), "b", 'a "<&> é')
    assert sequence_of(tmp_path, text) == ("b", 'a "<&> é')


@pytest.mark.parametrize("inside", [TWO, TWO + with_annotations(OTHER)])
def test_every_byte_outside_of_the_annotation_is_untouched(inside: str) -> None:
    text = ssd(inside).replace("\n", "\r\n")
    copy = with_sequence(text, "b", "a").decode()
    begin = next(k for k in range(len(text)) if copy[k] != text[k])
    end = len(text) - begin
    assert copy[:begin] + copy[len(copy) - end :] == text
    assert "\n" not in copy.replace("\r\n", "")


def test_a_sequence_replaces_an_older_one(tmp_path: Path) -> None:
    text = ssd(TWO + with_annotations(f"\n{OTHER}\n"))
    first = with_sequence(text, "a", "b").decode()
    assert with_sequence(first, "b", "a") == with_sequence(text, "b", "a")
    assert with_sequence(first, "a", "b").decode() == first


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_copy_keeps_the_encoding(tmp_path: Path, encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    text = ssd(TWO.replace('"a"', '"é"')).replace("UTF-8", declared)
    copy = with_sequence(text, "b", "é", encoding=encoding)
    assert sequence_of(tmp_path, copy) == ("b", "é")
    assert copy.decode(encoding).replace("\ufeff", "").startswith(text[:60])


def test_a_nested_system_is_not_taken_for_the_root(tmp_path: Path) -> None:
    nested = (
        '<ssd:System name="n">'
        + elements(component("c"))
        + with_annotations(OTHER)
        + "</ssd:System>"
    )
    copy = with_sequence(ssd(elements(component("a"), nested)), "n.c", "a")
    assert sequence_of(tmp_path, copy) == ("n.c", "a")


def test_a_copy_is_valid_by_the_schema_of_ssp(tmp_path: Path) -> None:
    folder = Path(fmpy.__file__).parent / "ssp" / "schema"
    schema = etree.XMLSchema(etree.parse(folder / "SystemStructureDescription.xsd"))
    (tmp_path / "s.ssd").write_bytes(with_sequence(ssd(TWO), "b", "a"))
    schema.assertValid(etree.parse(tmp_path / "s.ssd"))


def test_a_copy_of_an_archive_has_the_same_content_in_all_other_entries(tmp_path: Path) -> None:
    source, copy = reference_path("systems/two-mass-b1-fmi3.ssp"), tmp_path / "copy.ssp"
    copy_with_annotation(source, copy, SEQUENCE.type, write_sequence(["lower", "upper"]))
    assert read_system(copy).sequence == ("lower", "upper")
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(copy) as after:
        assert after.namelist() == before.namelist()
        for name in before.namelist():
            if name != "SystemStructure.ssd":
                assert after.read(name) == before.read(name)
                assert after.getinfo(name).date_time == before.getinfo(name).date_time


def test_the_system_itself_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "s.ssd"
    path.write_text(ssd(TWO), encoding="utf-8")
    with pytest.raises(FileError, match="is the system itself"):
        copy_with_annotation(path, path, SEQUENCE.type, write_sequence(["a", "b"]))
    with pytest.raises(FileError, match=r"ends with \.ssd"):
        copy_with_annotation(path, tmp_path / "t.xml", SEQUENCE.type, write_sequence(["a", "b"]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.ssd"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TriggerSequence", "TriggerSequenz", "element TriggerSequenz is not known here"),
        (' version="1.0">', ">", "attribute 'version' of TriggerSequence is missing"),
        ('version="1.0">', 'version="2.0">', "expected a version 1.x"),
        ('<Component name="b"/>', "<Component/>", "attribute 'name' of Component is missing"),
        ('<Component name="b"/>', '<Unit name="b"/>', "element Unit is not known"),
    ],
)
def test_what_is_wrong_with_an_annotation_is_said(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    element = write_sequence(["b", "a"]).replace(old, new)
    text = annotated(ssd(TWO).encode(), "s.ssd", SEQUENCE.type, element)
    with pytest.raises(FileError, match=message):
        sequence_of(tmp_path, text)


def test_two_sequences_are_refused(tmp_path: Path) -> None:
    one = f'<ssc:Annotation type="{SEQUENCE.type}">{write_sequence(["a", "b"])}</ssc:Annotation>'
    with pytest.raises(FileError, match="has 2 trigger sequences"):
        read(tmp_path, ssd(TWO + with_annotations(one, one)))

"""Text of pages: columns and sentences in the width of the terminal."""

from __future__ import annotations

import pytest

from fmimaster.base.text import aligned, fitted, in_short, page_width, paragraph, section, shortened
from fmimaster.steps.halved import Halved


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_the_width_is_that_of_the_terminal_or_100(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_width() == 60
    monkeypatch.setenv("COLUMNS", "1")
    assert page_width() == 40
    monkeypatch.delenv("COLUMNS")
    assert page_width() == 100  # pytest has redirected the standard output


def test_a_long_line_is_continued_with_its_indent_and_more() -> None:
    line = "  the first words of a sentence that is longer than a page of sixty columns"
    assert fitted(line) == [
        "  the first words of a sentence that is longer than a page",
        "    of sixty columns",
    ]


def test_entries_of_a_numbered_list_begin_behind_the_number() -> None:
    assert fitted("  1. " + "word " * 12) == [
        "  1. word word word word word word word word word word word",
        "     word",
    ]


def test_a_paragraph_has_no_indent() -> None:
    assert paragraph("word " * 13) == ["word " * 11 + "word", "word"]


def test_a_word_longer_than_the_page_is_not_broken() -> None:
    name = "component.variable" * 5
    assert fitted(f"  see {name} there") == ["  see", f"    {name}", "    there"]


def test_a_long_last_cell_stays_in_its_column() -> None:
    rows = [("a.x", "one two three four five six seven eight nine ten eleven twelve"), ("b", "c")]
    assert aligned(rows) == [
        "  a.x  one two three four five six seven eight nine ten",
        "       eleven twelve",
        "  b    c",
    ]


def test_a_long_cell_behind_wide_columns_gets_lines_of_its_own() -> None:
    why = "why it is late in the end, in so many words that they need more"
    rows = [("component.first", "component.second", why), ("b", "c", "d")]
    assert aligned(rows) == [
        "  component.first  component.second",
        "      why it is late in the end, in so many words that they",
        "        need more",
        "  b                c                 d",
    ]


def test_lines_of_a_section_fit_the_page() -> None:
    assert section("Notes", ["  " + "word " * 20], if_empty="none")[1:] == [
        "Notes",
        "  word word word word word word word word word word word",
        "    word word word word word word word word word",
    ]
    assert section("Notes", [], if_empty="none") == ["", "Notes", "  none"]
    assert section("Notes", []) == []


def test_numbers_without_room_stand_below_the_long_name() -> None:
    rows = [
        ("connection", "error", "of scale", "largest", "at"),
        ("component.output -> other.input", "0.00158 m/s", "0.3 %", "0.0077 m/s", "0.026 s"),
        ("a -> b", "1 m", "1 %", "2 m", "0.001 s"),
    ]
    assert aligned(rows) == [
        "  connection",
        "      error        of scale  largest     at",
        "  component.output -> other.input",
        "      0.00158 m/s  0.3 %     0.0077 m/s  0.026 s",
        "  a -> b",
        "      1 m          1 %       2 m         0.001 s",
    ]


def test_a_list_is_shortened_by_rows_whatever_lines_they_take() -> None:
    rows = [(f"v{k}", "word " * 20) for k in range(5)]
    assert shortened(rows, 2, total=9)[-1] == "  ... and 7 more (all with --all)"
    assert sum(line.startswith("  v") for line in shortened(rows, 2)) == 2
    assert not any("more" in line for line in shortened(rows, 5))


def test_a_setting_in_short_has_the_first_of_many_numbers() -> None:
    """The points of the run before were thousands of numbers in one line."""
    rule = Halved(0.1, times=tuple(float(k) for k in range(1000)))
    assert in_short(rule) == "Halved(size=0.1, times=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, ...))"

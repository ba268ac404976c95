"""Text of others, as it is shown."""

from __future__ import annotations

import json
import logging
import os
import pickle
import unicodedata
from collections.abc import Iterator
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmimaster.base.errors import FmimasterError
from fmimaster.base.text import in_a_line, visible, visible_json
from fmimaster.commands.text import tell
from fmimaster.fmu.call_log import MessageLog
from fmimaster.fmu.process_state import fmu_output_to_log

ACT = {"Cc", "Cs", "Zl", "Zp"}
TURN = set(map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def acts(character: str) -> bool:
    """Whether a character controls a terminal, by what Unicode says of it."""
    return unicodedata.category(character) in ACT or character in TURN


def test_no_character_of_visible_text_acts_but_tab_and_line_feed() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert {c for c in visible(every) if acts(c)} == {"\t", "\n"}
    assert not any(map(acts, in_a_line(every)))


@given(st.text())
def test_text_without_control_characters_stays_as_it_is(text: str) -> None:
    plain = "".join(c for c in text if not acts(c))
    assert visible(plain) == in_a_line(plain) == plain


@given(st.text())
def test_what_is_visible_is_visible_again(text: str) -> None:
    assert visible(visible(text)) == visible(text)


def test_line_ends_of_windows_are_line_feeds() -> None:
    assert visible("a\r\nb\rc") == "a\nb\\rc"


@given(st.dictionaries(st.text(), st.text()))
def test_visible_json_has_the_same_content(data: dict[str, str]) -> None:
    text = visible_json(json.dumps(data, ensure_ascii=False))
    assert json.loads(text) == data
    assert not any(map(acts, text))


def test_an_error_shows_no_control_character_and_keeps_what_it_was_made_with() -> None:
    error = FmimasterError("'pump\x1b[2J' is \u202eenif")
    assert str(error) == r"'pump\x1b[2J' is \u202eenif"
    assert pickle.loads(pickle.dumps(error)).args == error.args == ("'pump\x1b[2J' is \u202eenif",)


@pytest.fixture
def logged() -> Iterator[StringIO]:
    """What a user's own handler writes."""
    stream, log = StringIO(), logging.getLogger("fmimaster")
    handler = logging.StreamHandler(stream)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield stream
    log.removeHandler(handler)
    log.setLevel(level)


def test_a_message_of_an_fmu_is_made_visible_where_it_comes_in(logged: StringIO) -> None:
    messages = MessageLog("pump")
    messages.add(1, b"", b"broken\x1b[2J\x07\rfine\xff")
    assert messages.last[-1] == "broken\\x1b[2J\\x07\\rfine\N{REPLACEMENT CHARACTER}"
    assert "broken\\x1b[2J\\x07\\rfine" in logged.getvalue()


def test_what_an_fmu_prints_is_made_visible_where_it_comes_in(
    logged: StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    with fmu_output_to_log("pump"):
        os.write(1, b"50 %\r100 %\x1b]0;title\x07\n")
    assert "pump: 50 %\\r100 %\\x1b]0;title\\x07" in logged.getvalue()
    assert capfd.readouterr().out == ""


def test_a_name_cannot_forge_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    tell(["fmimaster: error: there is no 'a\nfmimaster: all is well\r\n\x1b[2J'"])
    assert [line[:4] for line in capsys.readouterr().err.splitlines()] == ["fmim", "    ", "    "]

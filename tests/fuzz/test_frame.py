"""The checks of the fuzzers notice what they are there for."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from fuzzing import survives
from hypothesis import find, given, settings
from lxml import etree  # type: ignore[import-untyped,unused-ignore]
from mutations import edited_bytes, edited_xml

from fmimaster.base.errors import FileError, ModelError


def test_a_foreign_exception_leaves_as_it_is() -> None:
    with pytest.raises(KeyError):
        survives({}.__getitem__, "a")


def test_an_error_of_our_own_is_returned() -> None:
    def refuse() -> None:
        raise FileError("a.csv is missing.")

    assert isinstance(survives(refuse), FileError)


@pytest.mark.skipif(sys.platform != "linux", reason="the timers and RLIMIT_DATA of Linux")
def test_an_endless_loop_is_noticed_though_exceptions_are_swallowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fuzzing.SECONDS", 0.2)

    def loop() -> None:
        end = time.process_time() + 0.5
        try:
            while time.process_time() < end:
                pass
        except BaseException:
            return

    with pytest.raises(AssertionError, match="no end"):
        survives(loop)


@pytest.mark.skipif(sys.platform != "linux", reason="the timers and RLIMIT_DATA of Linux")
def test_a_large_allocation_is_noticed_though_it_becomes_an_error_of_our_own() -> None:
    def allocate() -> None:
        try:
            np.ones(10**9)
        except MemoryError as error:
            raise ModelError("It is too large.") from error

    with pytest.raises(AssertionError, match="MB"):
        survives(allocate)


DOCUMENT = b"<a><b name='x'/><b name='y'/><c start='1'>text</c></a>"


@settings(max_examples=50)
@given(document=edited_xml([DOCUMENT]))
def test_edited_xml_is_well_formed(document: bytes) -> None:
    etree.fromstring(document, etree.XMLParser(huge_tree=True))


def test_edited_bytes_hold_most_of_the_document() -> None:
    edited = find(edited_bytes([DOCUMENT]), lambda d: d != DOCUMENT and len(d) > 40)
    assert edited[:10] == DOCUMENT[:10] or edited[-10:] == DOCUMENT[-10:]

"""References of other tools: Booleans as words, arrays, text without quotes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fmimaster.conformance.reference_file import read_reference
from fmimaster.errors import FileError


def test_booleans_as_words_are_read(tmp_path: Path) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text("time,x,on\n0,1.5,false\n1,2.5,true\n")
    reference, notes = read_reference(file)
    assert notes == ()
    assert reference["x"].tolist() == [1.5, 2.5]
    assert reference["on"].dtype == np.bool_
    assert reference["on"].tolist() == [False, True]


def test_columns_without_numbers_are_left_out_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text("time,x,y,text\n0,1,1 2 3,Set me!\n1,2,4 5 6,Set me!\n")
    reference, notes = read_reference(file)
    assert reference.names == ("x",)
    assert notes == ("'A_ref.csv': columns without numbers, not compared: y and text",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,on,x\n0,true,1\n1,false,1.o\n", "line 2: column 'on' has 'true'"),
        ("time,x\n0,1\n1,1.o\n", "line 3: column 'x' has '1.o'; expected a number"),
        ("time,x\n0,true\n1\n", "line 2"),
        ("", "is empty"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text(text)
    with pytest.raises(FileError, match=message):
        read_reference(file)

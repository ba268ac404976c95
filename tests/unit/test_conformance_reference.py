"""References of other tools: Booleans as words, arrays, text without quotes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import changed

from fmimaster import reference_path
from fmimaster.base.errors import FileError
from fmimaster.conformance.cases import find_cases
from fmimaster.conformance.reference_file import read_carried, read_reference
from fmimaster.conformance.verdict_files import shorten
from fmimaster.fmu.library import FmuFile
from fmimaster.system.model import Source


def test_booleans_as_words_are_read(tmp_path: Path) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text("time,x,on\n0,1.5,false\n1,2.5,true\n", encoding="utf-8")
    reference, notes = read_reference(file)
    assert notes == ()
    assert reference["x"].tolist() == [1.5, 2.5]
    assert reference["on"].dtype == np.bool_
    assert reference["on"].tolist() == [False, True]


def test_columns_without_numbers_are_left_out_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text("time,x,y,text\n0,1,a 2,Set me!\n1,2,b 3,Set me!\n", encoding="utf-8")
    reference, notes = read_reference(file)
    assert reference.names == ("x",)
    assert notes == ("'A_ref.csv': columns without numbers, not compared: y and text",)


def test_cells_with_several_numbers_are_arrays(tmp_path: Path) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text(
        "time,y,on,n\n0,10 0 0 0,true false,1\n1,1 2 3 4.5,false true,2\n", encoding="utf-8"
    )
    reference, notes = read_reference(file)
    assert notes == ()
    assert reference["y"].tolist() == [[10.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.5]]
    assert reference["on"].tolist() == [[True, False], [False, True]]
    assert reference["n"].tolist() == [1, 2]
    assert "y[4]" in reference.expand()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,y\n0,1 2\n1,1 2 3\n", "line 2: column 'y' has '1 2'"),
        ("time,on,x\n0,true,1\n1,false,1.o\n", "line 2: column 'on' has 'true'"),
        ("time,x\n0,1\n1,1.o\n", "line 3: column 'x' has '1.o'; expected a number"),
        ("time,x\n0,true\n1\n", "line 2"),
        ("", "is empty"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "A_ref.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        read_reference(file)


MANIFEST = """<fmiReferences xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"
    fmi-ls:fmi-ls-name="org.fmi-standard.fmi-ls-ref" fmi-ls:fmi-ls-version="1.0.0-alpha.1" fmi-ls:fmi-ls-description="">
  <Related type="text/csv" source="{}" role="result"/>
</fmiReferences>"""


def carrying(folder: Path, source: str, text: str) -> Path:
    """Dahlquist with results inside."""
    place = "extra/org.fmi-standard.fmi-ls-ref"
    members = {
        f"{place}/fmi-ls-manifest.xml": MANIFEST.format(source).encode(),
        f"{place}/D out.csv": text.encode(),
    }
    return changed(reference_path("fmi3/Dahlquist.fmu"), folder / "D.fmu", members=members)


def test_results_that_an_fmu_carries_are_its_reference(tmp_path: Path) -> None:
    carrying(tmp_path, "D%20out.csv", "time,x\n0,1\n1,0.5\n")
    reference, name, notes = read_carried(find_cases(tmp_path)[0], {"x"})
    assert reference is not None
    assert reference["x"].tolist() == [1.0, 0.5]
    assert name == "extra/org.fmi-standard.fmi-ls-ref/D out.csv"
    assert notes == ()


def test_the_layered_standard_of_references_is_known(tmp_path: Path) -> None:
    fmu = FmuFile(Source(carrying(tmp_path, "D%20out.csv", "time,x\n0,1\n")))
    [standard] = fmu.model.layered_standards
    fmu.close()
    assert (standard.name, standard.known) == ("org.fmi-standard.fmi-ls-ref", True)


@pytest.mark.parametrize(
    ("source", "text", "note"),
    [
        ("../../../../etc/passwd.csv", "", None),
        ("https://example.org/D out.csv", "", None),
        ("D%20out.csv", "time,h\n0,1\n1,2\n", "they have no values of its variables"),
        ("D%20out.csv", "time,x\n0,1\n1,1.o\n", "cannot be read: 'D out.csv', line 3"),
    ],
)
def test_carried_results_that_cannot_be_compared_are_no_fault(
    tmp_path: Path, source: str, text: str, note: str | None
) -> None:
    carrying(tmp_path, source, text)
    reference, name, notes = read_carried(find_cases(tmp_path)[0], {"x"})
    assert (reference, name) == (None, "")
    assert [note is not None and note in text for text in notes] == [True] * (note is not None)


def test_results_above_the_limit_lose_rows_but_not_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "A_out.csv"
    rows = [f"{k},{k * k}\n" for k in range(1000)]
    file.write_text('"time","x"\n' + "".join(rows), encoding="utf-8")
    assert shorten(file, file.stat().st_size) == ()
    [note] = shorten(file, 4000)
    assert "every 3th row" not in note
    assert 3000 < file.stat().st_size <= 4000
    kept = file.read_text(encoding="utf-8").splitlines(keepends=True)
    assert kept[1] == rows[0]
    assert kept[-1] == rows[-1]
    assert set(kept[1:]) < set(rows)

"""Values that are absent, as those of clocked variables between activations, in every form of results."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster.commands.running import ranges, run_facts
from fmimaster.results.csv import CsvWriter, read_csv
from fmimaster.results.formats import FORMATS
from fmimaster.results.results import Results

PRESENT = np.array([False, True, False, True])


@pytest.fixture(params=FORMATS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A path with each suffix; skipped where its library is not installed."""
    pytest.importorskip(FORMATS[request.param].library or "numpy")
    return tmp_path / f"rows{request.param}"


def clocked(values: Any, present: Any = PRESENT) -> np.ma.MaskedArray[Any, Any]:
    array = np.empty(4, object) if isinstance(values[0], str | bytes) else np.array(values)
    array[:] = values
    absent = ~np.asarray(present)
    return np.ma.MaskedArray(
        array, np.broadcast_to(absent.reshape(-1, *[1] * (array.ndim - 1)), array.shape)
    )


COLUMNS = {
    "clock": PRESENT,
    "float": clocked([0.0, 1.5, 0.0, 2.5]),
    "integer": clocked(np.array([7, 8, 9, 10], np.int32)),
    "truth": clocked([True, False, True, True]),
    "text": clocked(["a", "", "a", "b"]),
    "bytes": clocked([b"", b"\x00\xff", b"", b""]),
    "array": clocked(np.arange(8.0).reshape(4, 2)),
    "never": clocked([1.0, 2.0, 3.0, 4.0], [False] * 4),
    "never text": clocked(["", "", "", ""], [False] * 4),
}


@pytest.fixture
def results() -> Results:
    """Two rows at each of two times: a clock ticks in the second one."""
    return Results(time=[0.0, 0.0, 1.0, 1.0], columns=COLUMNS, units={"float": "m"})


def test_absent_values_come_back_from_every_format(results: Results, file: Path) -> None:
    results.write(file)
    read = Results.read(file)
    expected = results if file.suffix == ".h5" else results.expand()
    if file.suffix == ".mat":
        expected = expected.select([n for n in expected.names if expected[n].dtype != object])
    assert read.names == expected.names
    for name, values in expected.columns.items():
        found = read[name].tolist()
        if file.suffix == ".csv" and name == "bytes":
            assert found == [None, "00ff", None, ""]
        else:
            assert found == values.tolist(), name
        assert np.ma.isMaskedArray(read[name]) == np.ma.isMaskedArray(values), name
    assert read.units == {"float": "m"}


@pytest.mark.parametrize("suffix", [".parquet", ".h5"])
def test_columns_with_absent_values_keep_their_types(
    results: Results, suffix: str, tmp_path: Path
) -> None:
    pytest.importorskip(FORMATS[suffix].library)
    results.write(tmp_path / f"rows{suffix}")
    read = Results.read(tmp_path / f"rows{suffix}")
    for name in ("clock", "float", "integer", "truth", "text", "bytes", "never", "never text"):
        assert read[name].dtype == results[name].dtype, name


def test_blocks_with_and_without_absent_values_are_one_column(results: Results, file: Path) -> None:
    """During a run rows come in blocks, in some of which a clock never ticks."""
    from fmimaster.results.files import row_writer

    with row_writer(file) as writer:
        for k in range(4):
            columns = {name: values[k : k + 1] for name, values in results.columns.items()}
            writer.write(Results(time=results.time[k : k + 1], columns=columns))
    whole = file.with_name(f"whole{file.suffix}")
    results.write(whole)
    read, expected = Results.read(file), Results.read(whole)
    assert [read[n].tolist() for n in expected] == [expected[n].tolist() for n in expected]


def test_cells_of_absent_values_are_empty_in_csv(results: Results) -> None:
    text = StringIO()
    CsvWriter(text).write(results)
    assert text.getvalue().splitlines()[1:] == [
        "0.0,0,,,,,,,,,",
        '0.0,1,1.5,8,0,"","00ff",2.0,3.0,,',
        "1.0,0,,,,,,,,,",
        '1.0,1,2.5,10,1,"b","",6.0,7.0,,',
    ]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["", '""', ' "x"'], [None, "", "x"]),
        (['"a,""b"', "", '"l\n2"'], ['a,"b', None, "l\n2"]),
        (["", "", '""'], [None, None, ""]),
    ],
)
@pytest.mark.parametrize("at_once", [1, 100])
def test_an_empty_cell_is_no_empty_text(
    cells: list[str],
    expected: list[str | None],
    at_once: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fmimaster.results.csv._ROWS_AT_ONCE", at_once)
    rows = "".join(f"{k},{cell},{k}\n\n" for k, cell in enumerate(cells))
    (tmp_path / "r.csv").write_text(f"time,s,x\n{rows}", newline="", encoding="utf-8")
    read = read_csv(tmp_path / "r.csv")
    assert read["s"].tolist() == expected
    assert read["x"].tolist() == [0.0, 1.0, 2.0]


def test_pandas_has_absent_values_in_the_types_of_the_columns(results: Results) -> None:
    pandas = pytest.importorskip("pandas")
    frame = results.to_pandas()
    kinds = {name: str(frame[name].dtype) for name in ("clock", "float", "integer", "truth")}
    assert kinds == {"clock": "bool", "float": "float64", "integer": "Int32", "truth": "boolean"}
    for name in set(frame) - {"clock", "never", "never text"}:
        assert frame[name].isna().tolist() == [True, False, True, False], name
    assert frame["integer"].dropna().tolist() == [8, 10]
    assert frame["text"].dropna().tolist() == ["", "b"]
    assert frame["bytes"].tolist() == [None, b"\x00\xff", None, b""]
    assert frame["integer"].iloc[0] is pandas.NA
    assert frame["never"].isna().all()


def test_xarray_has_nan_for_absent_values(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    data = results.to_xarray()
    assert data["integer"].isnull().values.tolist() == [True, False, True, False]
    assert data["integer"].dropna("time").values.tolist() == [8.0, 10.0]
    assert data["text"].isnull().values.tolist() == [True, False, True, False]
    assert data["array"].isnull().values.tolist() == [[True] * 2, [False] * 2] * 2
    assert not data["clock"].isnull().any()


def test_structured_arrays_have_masks(results: Results) -> None:
    table = results.to_structured()
    assert table["float"].tolist() == [None, 1.5, None, 2.5]
    assert table["bytes"].tolist() == [None, b"\x00\xff", None, b""]
    assert np.ma.getmaskarray(table["array"])[:, 0].tolist() == [True, False, True, False]
    assert table["clock"].tolist() == [False, True, False, True]


def test_a_notebook_shows_nothing_for_an_absent_value(results: Results) -> None:
    page = results.select(["float", "text", "bytes", "array"])._repr_html_()
    absent = "<td align='right'></td>"
    row = f"<tr><td align='right'>0</td>{4 * absent}</tr>"
    assert page.count(row) == 1
    assert "<td align='right'>00ff</td><td align='right'>array 2</td>" in page


def test_summaries_are_of_present_values(results: Results) -> None:
    rows = [line.split() for line in ranges(results.select(["clock", "integer", "bytes", "never"]))]
    assert rows[1:] == [
        ["clock", "False", "True", "False", "True"],
        ["integer", "8", "10", "8", "10", "in", "2", "of", "4", "rows"],
        ["bytes", "00ff", "in", "2", "of", "4", "rows"],
        ["never", "in", "0", "of", "4", "rows"],
    ]
    facts = {v["name"]: v for v in run_facts("x.fmu", results, {})["variables"]}
    ends = ("first", "last", "smallest", "largest", "present")
    assert [facts["integer"][key] for key in ends] == [8, 10, 8, 10, 2]
    assert [facts["never"][key] for key in ends] == [None, None, None, None, 0]
    assert [facts["bytes"][key] for key in ends] == ["00ff", "", None, None, 2]


def test_a_mat_file_tells_where_nan_means_absent(results: Results, tmp_path: Path) -> None:
    io = pytest.importorskip("scipy.io")
    results.select(["clock", "float"]).write(tmp_path / "r.mat")
    letters = io.loadmat(tmp_path / "r.mat", chars_as_strings=False)["description"].T
    assert ["".join(row).strip() for row in letters] == ["[s]", "", "NaN: absent [m]"]

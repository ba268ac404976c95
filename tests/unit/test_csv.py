"""CSV files by the rules of FMI: the exact bytes that are written, and what is read."""

import io
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from fmimaster.base.errors import FileError, OptionError
from fmimaster.results.csv import CsvWriter, read_csv, write_csv
from fmimaster.results.results import Results
from fmimaster.results.table import Table


def written(results: Results) -> str:
    stream = io.StringIO(newline="")
    write_csv(results, stream)
    return stream.getvalue()


def one_column(values: object, name: str = "x") -> Results:
    column = np.asarray(values)
    return Results(time=np.arange(len(column)), columns={name: column})


def cells(values: object) -> list[str]:
    """What is written for the values of one column."""
    return [line.partition(",")[2] for line in written(one_column(values)).splitlines()[1:]]


def reading(path: Path, text: str) -> Table:
    path.write_bytes(text.encode())
    return read_csv(path)


def message(path: Path, text: str) -> str:
    """The error that reading the text gives, without the path."""
    with pytest.raises(FileError) as error:
        reading(path, text)
    assert str(path) in str(error.value)
    return str(error.value).replace(f"'{path}'", "FILE")


@pytest.fixture(params=["kernel", "Python"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is the same with the kernel and without it."""
    if request.param == "Python":
        monkeypatch.setattr("fmimaster.results.numbers.kernel", lambda: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.csv"


def test_the_first_column_is_time_and_names_are_quoted() -> None:
    results = Results(time=[0.0, 0.5], columns={"upper.x": [1.0, 2.5], "upper.v": [0.0, -1.0]})
    assert written(results) == '"time","upper.x","upper.v"\n0.0,1.0,0.0\n0.5,2.5,-1.0\n'


def test_quotes_in_a_name_are_doubled() -> None:
    assert written(one_column([], '"a", b')) == '"time","""a"", b"\n'


def test_floats_are_as_short_as_reading_them_back_allows() -> None:
    assert cells([0.1, 1 / 3, 1e300, -0.0]) == ["0.1", "0.3333333333333333", "1e+300", "-0.0"]


def test_32_bit_floats_are_as_short_as_reading_them_back_allows() -> None:
    assert cells(np.array([0.1, 1 / 3, 1e20], np.float32)) == ["0.1", "0.33333334", "1e+20"]


def test_numbers_that_are_not_finite_are_written_as_c_reads_them() -> None:
    assert cells([np.inf, -np.inf, np.nan]) == ["inf", "-inf", "nan"]


def test_booleans_are_0_and_1() -> None:
    assert cells([True, False]) == ["1", "0"]


def test_64_bit_integers_are_exact() -> None:
    assert cells(np.array([2**63 - 1, -(2**63)])) == ["9223372036854775807", "-9223372036854775808"]
    assert cells(np.array([2**64 - 1], np.uint64)) == ["18446744073709551615"]


def test_text_is_quoted() -> None:
    assert cells(['say "hi"', "a,b", ""]) == ['"say ""hi"""', '"a,b"', '""']


def test_binaries_are_hexadecimal_text() -> None:
    assert cells(np.array([b"\x00\xff"], object)) == ['"00ff"']


def test_a_repeated_time_is_written_as_it_is() -> None:
    results = Results(time=[1.0, 1.0], columns={"v": [-2.0, 2.0]})
    assert written(results) == '"time","v"\n1.0,-2.0\n1.0,2.0\n'


def test_arrays_become_a_column_per_element() -> None:
    results = Results(time=[0.0], columns={"m": [[[1, 2], [3, 4]]], "v": [[5, 6]]})
    assert written(results) == (
        '"time","m[1,1]","m[1,2]","m[2,1]","m[2,2]","v[1]","v[2]"\n0.0,1,2,3,4,5,6\n'
    )


def test_lines_end_alike_on_all_systems(path: Path) -> None:
    write_csv(one_column([1, 2]), path)
    assert path.read_bytes() == b'"time","x"\n0.0,1\n1.0,2\n'


def test_blocks_give_the_same_bytes_as_the_whole_table(path: Path) -> None:
    time, values = np.arange(10_000) / 7, np.random.default_rng(1).normal(size=10_000)
    with CsvWriter(path) as writer:
        for part in np.split(np.arange(10_000), [0, 1, 5000, 9999]):
            writer.write(
                Results(time=time[part], columns={"x": values[part], "b": values[part] > 0})
            )
    whole = written(Results(time=time, columns={"x": values, "b": values > 0}))
    assert path.read_text(encoding="utf-8") == whole


def test_a_block_without_rows_writes_the_header_only(path: Path) -> None:
    with CsvWriter(path) as writer:
        writer.write(one_column([]))
    assert path.read_text(encoding="utf-8") == '"time","x"\n'


def test_blocks_with_other_columns_are_an_error() -> None:
    writer = CsvWriter(io.StringIO())
    writer.write(one_column([1.0], "x"))
    with pytest.raises(OptionError) as error:
        writer.write(one_column([1.0], "y"))
    assert str(error.value) == (
        "A block of rows has other columns than the blocks before it: x, y."
    )


def test_a_stream_that_was_given_stays_open() -> None:
    stream = io.StringIO()
    with CsvWriter(stream) as writer:
        writer.write(one_column([1.0]))
    assert not stream.closed


def test_a_file_in_no_folder_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "results.csv"
    with pytest.raises(FileError) as error:
        one_column([1.0]).write(path)
    assert str(error.value) == (
        f"The results file '{path}' cannot be written: No such file or directory."
    )


def test_what_was_written_is_read_back_bit_for_bit(path: Path) -> None:
    values = np.random.default_rng(2).normal(size=5000) * 10.0 ** np.arange(-100, 150, 0.05)
    values[:3] = np.inf, -np.inf, -0.0
    table = Results(
        time=np.repeat(np.arange(2500) / 3, 2),
        columns={"a.x": values, 'odd "name", b': -values, "s": ['two\nlines, "q"'] * 5000},
    )
    table.write(path)
    copy = Results.read(path)
    assert copy.names == table.names
    assert copy.index.tolist() == [0, 1] * 2500
    assert copy["a.x"].tobytes() == values.tobytes()
    assert copy["s"].tolist() == table["s"].tolist()


def test_fmpy_reads_what_was_written(path: Path) -> None:
    from fmpy.util import read_csv as read_with_fmpy

    one_column([0.1, 0.2], "a.x").write(path)
    table = read_with_fmpy(path)
    assert table.dtype.names == ("time", "a.x")
    assert table["a.x"].tolist() == [0.1, 0.2]


def test_what_fmpy_writes_is_read(path: Path) -> None:
    from fmpy.util import write_csv as write_with_fmpy

    write_with_fmpy(path, one_column([0.1, 0.2], "a.x").to_structured())
    assert read_csv(path)["a.x"].tolist() == [0.1, 0.2]


def test_names_without_quotes_and_blanks_after_commas_are_read(path: Path) -> None:
    results = reading(path, 'time, a.x , "b"\r\n0, 1 , 2\r\n\r\n1, 3e0, -4.\r\n')
    assert results.names == ("a.x", "b")
    assert results["a.x"].tolist() == [1.0, 3.0]
    assert results["b"].tolist() == [2.0, -4.0]


def test_a_byte_order_mark_is_no_part_of_the_name(path: Path) -> None:
    assert reading(path, '\ufeff"time","x"\n0,1\n').names == ("x",)


def test_a_header_without_rows_is_a_table_without_rows(path: Path) -> None:
    results = reading(path, '"time","x"\n')
    assert results.rows == 0
    assert results.names == ("x",)


def test_text_may_be_empty(path: Path) -> None:
    assert reading(path, 'time,s\n0,""\n1,"on"\n')["s"].tolist() == ["", "on"]


def test_a_missing_file_is_an_error(path: Path) -> None:
    with pytest.raises(FileError) as error:
        read_csv(path)
    assert str(error.value) == f"'{path}' does not exist. Check the path."


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder, expected a file"):
        read_csv(tmp_path)


def test_an_empty_file_is_an_error(path: Path) -> None:
    assert message(path, "") == "FILE is empty; expected a header whose first name is 'time'."


def test_a_binary_file_is_an_error(path: Path) -> None:
    path.write_bytes(b"\x50\x4b\xff\xfe")
    with pytest.raises(FileError, match="is not a CSV file: it is not text in UTF-8"):
        read_csv(path)


def test_bytes_that_are_no_text_late_in_a_file_are_an_error(path: Path) -> None:
    path.write_bytes(b"time,x\n" + b"0,1\n" * 10_000 + b"1,\xff\n")
    with pytest.raises(FileError, match="is not a CSV file: it is not text in UTF-8"):
        read_csv(path)


def test_a_first_column_other_than_time_is_an_error(path: Path) -> None:
    assert message(path, "a,x\n0,1\n") == "FILE, line 1: the first column is 'a'; expected 'time'."


def test_a_name_that_occurs_twice_is_an_error(path: Path) -> None:
    assert message(path, "time,x,x\n") == (
        "FILE, line 1: the column 'x' occurs 2 times; expected each name once."
    )


@pytest.mark.parametrize(("row", "number"), [("1", 1), ("1,2,3", 3), ("1,2,abc", 3)])
def test_a_row_of_another_width_is_an_error(path: Path, row: str, number: int) -> None:
    assert message(path, f"time,x\n0,1\n{row}\n") == (
        f"FILE, line 3: the row has a wrong number of cells, {number}; the header has 2 names."
    )


def test_a_cell_that_is_no_number_is_an_error(path: Path) -> None:
    text = 'time,s,x\n0,"a\nb",1\n1,"c",oops\n'
    assert message(path, text) == "FILE, line 4: column 'x' has 'oops'; expected a number."


def test_a_cell_that_is_no_number_in_the_first_row_is_an_error(path: Path) -> None:
    assert message(path, "time,x\n0,oops\n") == (
        "FILE, line 2: column 'x' has 'oops'; expected a number."
    )


@pytest.mark.parametrize("rows", [(1.0, None, 2.5), (None, None, 3.0), (1.0, None, None)])
def test_where_there_is_no_value_a_table_comes_back_as_it_was(
    path: Path, rows: tuple[float | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "fmimaster.results.csv._ROWS_AT_ONCE", 2
    )  # a block may have no value at all
    x = np.ma.masked_invalid([np.nan if v is None else v for v in rows])
    write_csv(Results(time=[0, 1, 2], columns={"x": x, "s": ["a", "", "b"]}), path)
    read = read_csv(path)
    assert read["x"].tolist() == list(rows)
    assert read["x"].dtype == np.float64
    assert read["s"].tolist() == ["a", "", "b"]
    assert not np.ma.isMaskedArray(read["s"])


def test_a_time_without_a_value_is_an_error(path: Path) -> None:
    assert message(path, "time,x\n0,1\n,2\n") == (
        "FILE, line 3: column 'time' has ''; expected a number without quotes."
    )


@pytest.mark.parametrize("time", ["inf", "-inf", "nan", "1e400"])
def test_a_time_that_is_not_finite_is_an_error(path: Path, time: str) -> None:
    assert message(path, f"time,x\n{time},1\n") == (
        f"FILE, line 2: time is {float(time)}; expected a finite number."
    )


def test_a_number_in_a_column_of_text_is_an_error(path: Path) -> None:
    assert message(path, 'time,s\n0,"a"\n1,2\n') == (
        "FILE, line 3: column 's' has 2.0; expected text in double quotes."
    )


def test_a_quoted_time_is_an_error(path: Path) -> None:
    assert message(path, 'time,x\n"0",1\n') == (
        "FILE, line 2: column 'time' has '0'; expected a number without quotes."
    )


def test_a_time_that_decreases_is_an_error(path: Path) -> None:
    assert message(path, "time,x\n1,1\n0.5,1\n") == (
        "FILE, line 3: time goes from 1.0 to 0.5; it must not decrease."
    )


def test_a_path_may_be_text_or_path(path: Path) -> None:
    write_csv(one_column([1.0]), os.fspath(path))
    assert read_csv(os.fspath(path))["x"].tolist() == [1.0]


# Disks that are full ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
@pytest.mark.parametrize("limit", [1, 13, 100, 1000, 99_999])
def test_a_full_disk_leaves_whole_lines_only(path: Path, limit: int) -> None:
    import resource  # not there on Windows

    results = Results(time=np.arange(9000), columns={"x": np.arange(9000) / 7})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(FileError, match=r"results cannot be written to .*: File too large"):
            write_csv(results, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    left = path.read_bytes()
    assert written(results).encode().startswith(left)
    assert len(left) <= limit
    assert left == b"" or left.endswith(b"\n")


def test_the_text_of_wide_rows_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.results.csv._CELLS_AT_ONCE", 2000)
    x = np.arange(400.0) / 7
    wide = Table(time=np.arange(400.0), columns=dict.fromkeys(map(str, range(200)), x))
    tracemalloc.start()
    write_csv(wide, tmp_path / "wide.csv")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6  # 3.2 and 4.0 MB for all rows at once


@pytest.mark.parametrize(
    "name", ["t", "Time", "TIME", "time [s]", "Time (s)", "time/s", '"Time [s]"']
)
def test_spellings_of_the_time_of_other_programs_are_understood(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{name},u\n0,1\n1,2\n", encoding="utf-8")
    read = read_csv(path)
    assert (read.names, read.time.tolist()) == (("u",), [0.0, 1.0])


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("time;u", "Columns are separated by commas, not by semicolons."),
        ("time\tu", "Columns are separated by commas, not by tabs."),
        ("time [ms],u", "Its unit is s."),
    ],
)
def test_other_headers_get_a_hint(header: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n0,1\n", encoding="utf-8")
    with pytest.raises(FileError) as error:
        read_csv(path)
    assert str(error.value).endswith(f"expected 'time'. {hint}")

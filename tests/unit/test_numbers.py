"""Numbers as text in C: the digits of Python's repr; and back: the bits of Python's float."""

from __future__ import annotations

import random
from csv import Error as CsvError
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.results import csv, numbers
from fmimaster.results.numbers import read_plain
from fmimaster.results.table import Table

if not numbers.has_kernel():
    pytest.skip("the kernel was not built", allow_module_level=True)

MANY = 120_000
"""Of each kind of numbers."""


def doubles() -> dict[str, NDArray[np.float64]]:
    """Numbers of all kinds; the same ones each time."""
    draw = np.random.default_rng(1)
    powers = 2.0 ** np.arange(-1074, 1024)
    return {
        "special": np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308]),
        "limits": np.array(
            [1e-4, 9.999999999999999e-05, 1e15, 9999999999999998.0, 1e16, 1e22, 1e23]
        ),
        "powers of ten": np.array([float(f"1e{k}") for k in range(-324, 309)]),
        "powers of two": powers,
        "below powers of two": np.nextafter(powers, 0.0),
        "above powers of two": np.nextafter(powers[:-1], np.inf),
        "random bits": draw.integers(0, 2**64, MANY, dtype=np.uint64).view(np.float64),
        "subnormal": draw.integers(0, 2**52, MANY, dtype=np.uint64).view(np.float64),
        "normally distributed": draw.normal(size=4 * MANY),
        "few digits": np.round(draw.normal(size=MANY) * 1e3, 3),
        "integers and halves": draw.integers(-(10**6), 10**6, MANY) / 2,
        "large integers": draw.integers(-(2**60), 2**60, MANY).astype(float),
    }


def lines(*columns: NDArray[Any]) -> list[str]:
    return str(numbers.written(columns), "ascii").split("\n")[:-1]


def read(text: str, columns: int = 1) -> NDArray[np.float64]:
    return numbers.read(text.encode(), columns)[0]


@pytest.mark.parametrize("kind", doubles())
def test_a_double_has_the_digits_of_repr_and_is_read_back(kind: str) -> None:
    values = doubles()[kind]
    text = lines(values)
    assert text == list(map(repr, values.tolist()))
    finite = np.isfinite(values)
    back = read("\n".join(t for t, f in zip(text, finite, strict=True) if f) + "\n")
    assert back[:, 0].tobytes() == values[finite].tobytes()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_integers_have_all_digits(kind: str) -> None:
    limits = np.iinfo(kind)
    draw = np.random.default_rng(1).integers(limits.min, limits.max, 1000, kind, endpoint=True)
    values = np.concatenate([np.array([0, 1, 10, 100, limits.min, limits.max], kind), draw])
    assert numbers.can_write(values)
    assert lines(values) == list(map(str, values.tolist()))


@pytest.mark.parametrize(
    "values",
    [
        np.ones(3, np.float32),
        np.ones(3, ">f8"),
        np.ones(3, np.uint64),
        np.array(["a"], object),
        np.ma.MaskedArray([1.0, 2.0], [True, False]),
    ],
    ids=["Float32", "other order of bytes", "UInt64", "text", "absent"],
)
def test_other_columns_are_left_to_python(values: NDArray[Any]) -> None:
    assert not numbers.can_write(values)


def test_columns_may_be_parts_of_a_larger_table() -> None:
    table = np.arange(12.0).reshape(3, 4)
    assert lines(table[:, 1], table[:, 3] > 4.0, table[::-1, 2]) == [
        "1.0,0,10.0",
        "5.0,1,6.0",
        "9.0,1,2.0",
    ]


def test_decimal_numbers_of_any_size_are_read_as_python_reads_them() -> None:
    """What C does not decide is left to Python: powers of ten beyond the table."""
    draw = random.Random(1)
    digits = [draw.randrange(10 ** draw.randrange(1, 20)) for _ in range(MANY)]
    cells = [f"{draw.choice('+-')}{n}e{draw.randrange(-323, 289)}" for n in digits]
    read_ = read("\n".join(cells) + "\n")
    assert read_[:, 0].tobytes() == np.array(list(map(float, cells))).tobytes()


def test_what_lies_between_two_doubles_is_rounded_to_the_even_one() -> None:
    between = [2**53 + 2 * k + 1 for k in range(1000)]
    cells = list(
        chain.from_iterable((f"{n}", f"{5 * n}e-1", f"{n}e2", f"{25 * n}e-2") for n in between)
    )
    back = read("\n".join(cells) + "\n")
    assert back[:, 0].tolist() == list(map(float, cells))


@pytest.mark.parametrize(
    "cell",
    [
        "0",
        "00",
        "007",
        "0.",
        "5.",
        ".5",
        ".0",
        "00.50",
        "1E5",
        "1e+05",
        "-.5e-3",
        "+3",
        "-0",
        " 1 ",
        "0.0000000000000000000012345",
    ],
)
def test_other_ways_to_write_a_number_are_read(cell: str) -> None:
    assert read(cell + "\n").tobytes() == np.float64(cell).tobytes()


@pytest.mark.parametrize(
    "cell",
    ["", " ", ".", "-", "e5", "1e", "1e+", "0x1", "1_0", "nan", "inf", "1e400", "1 2", "--1", "1..2", '"1"', "1\t", "1\r2",
     "12345678901234567890", "1e99999"],
)  # fmt: skip
def test_what_is_no_plain_number_ends_the_reading(cell: str) -> None:
    values, used = numbers.read(f"1,2\n3,{cell}\n4,5\n".encode(), 2)
    assert (values.tolist(), used) == ([[1.0, 2.0]], 4)


@pytest.mark.parametrize("rest", ["1", "1,2", "1,2,3\n", "1\n", ",2\n", "1,\n"])
def test_a_row_that_is_not_whole_ends_the_reading(rest: str) -> None:
    values, used = numbers.read(f"\n1,2\r\n\r\n{rest}".encode(), 2)
    assert (values.tolist(), used) == ([[1.0, 2.0]], 8)


def checked(path: Path) -> Table | None:
    """What the reader gives that takes each cell in turn; None for an error."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        try:
            return csv._read(csv._Source(path, stream))
        except (FileError, UnicodeDecodeError, CsvError):
            return None


CELLS = st.sampled_from(
    ["0", "1", "2.5", " 3", " ", "1e1", "-1", "", "nan", '"a"', "x", "1,2", "\r", "\n", "\x00", "é"]
)


@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=5),
    newline=st.sampled_from(["\n", "\r\n"]),
)
@example(rows=[["\r"]], newline="\n")
@example(rows=[[" "], ["1", "2"]], newline="\n")
@pytest.mark.parametrize("has_kernel", [True, False])
def test_what_is_read_in_large_parts_is_what_the_checking_reader_reads(
    has_kernel: bool, rows: list[list[str]], newline: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "plain.csv"
    text = newline.join(["time,x", *map(",".join, rows)])
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fmimaster.results.numbers._BYTES_AT_ONCE", 9)
        if not has_kernel:
            patch.setattr("fmimaster.results.numbers.kernel", lambda: None)
        plain, expected = read_plain(path, ["time", "x"], 1), checked(path)
    if plain is not None:
        assert expected is not None
        assert plain.time.tobytes() == expected.time.tobytes()
        assert plain["x"].tobytes() == expected["x"].tobytes()


@pytest.mark.parametrize("size", [1, 7, 2**22])
def test_a_file_of_plain_numbers_is_read_in_large_parts(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.results.numbers._BYTES_AT_ONCE", size)
    path = tmp_path / "plain.csv"
    table = Table(
        time=np.arange(100) / 7, columns={"x": np.sin(np.arange(100.0)), "b": np.arange(100) > 50}
    )
    csv.write_csv(table, path)
    plain = read_plain(path, ["time", "x", "b"], 1)
    assert plain is not None
    assert plain.time.tobytes() == table.time.tobytes()
    assert plain["x"].tobytes() == table["x"].tobytes()
    assert plain["b"].tolist() == table["b"].tolist()


def test_empty_lines_take_no_memory_for_wide_rows() -> None:
    """A damaged file: so many rows of so many columns would be 8 TB."""
    text = b"\n" * 10**6
    values, used = numbers.read(text, 10**6)
    assert (len(values), used) == (0, len(text))
    values, used = numbers.read(b"1,2\n\n\n3,4\n\n", 2)
    assert (values.tolist(), used) == ([[1.0, 2.0], [3.0, 4.0]], 11)

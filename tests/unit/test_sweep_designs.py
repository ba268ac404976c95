"""The runs of a sweep by the values of its parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fmimaster.base.errors import FileError, OptionError
from fmimaster.studies.sweeps import (
    Choices,
    Design,
    DesignTable,
    FullGrid,
    LatinHypercube,
    Range,
    Sobol,
)


def test_a_sobol_sequence_fills_each_half_equally() -> None:
    columns = Sobol({"a": (0, 1), "b": Range(-2, 2)}, n=64).columns(())
    a, b = np.array(columns["a"]), np.array(columns["b"])
    quarters = [np.count_nonzero((a < 0.5) == x) for x in (True, False)]
    assert quarters == [32, 32]
    assert np.count_nonzero((a < 0.5) & (b < 0)) == 16
    assert Sobol({"a": (0, 1)}, n=8, seed=1).columns(()) != Sobol({"a": (0, 1)}, n=8).columns(())


def test_a_latin_hypercube_has_one_value_in_each_part() -> None:
    columns = LatinHypercube({"a": (0, 10), "b": (0, 1)}, n=10, seed=3).columns(())
    assert sorted(int(value) for value in columns["a"]) == [*range(10)]


def test_a_grid_has_every_combination() -> None:
    grid = FullGrid({"a": Range(0, 1, 3), "b": Choices(["x", "y"]), "c": (1, 3)}, n=3)
    columns = grid.columns(["c"])
    rows = [*zip(*columns.values(), strict=True)]
    assert len({*rows}) == 18
    assert rows[:4] == [(0.0, "x", 1), (0.0, "x", 2), (0.0, "x", 3), (0.0, "y", 1)]


def test_whole_numbers_have_equal_shares_with_both_ends() -> None:
    values = LatinHypercube({"k": (2, 4)}, n=30).columns(["k"])["k"]
    assert {value: list(values).count(value) for value in values} == {2: 10, 3: 10, 4: 10}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Range(2, 1), "2:1 is empty: expected LOW < HIGH"),
        (lambda: Range(0, float("inf")), "both finite"),
        (lambda: Range(0, 1, 1), "1 value, expected 2 or more"),
        (lambda: Choices([1]), "expected 2 or more"),
        (lambda: Sobol({}, n=8), "The design is empty"),
        (lambda: Sobol({"a": (0, 1)}, n=0), "0 runs"),
        (lambda: Sobol({"a": Range(0, 1, 4)}, n=8), "is for a grid"),
        (lambda: FullGrid({"a": (0, 1)}).columns(()), "needs the number of values of 'a'"),
        (lambda: FullGrid({"a": (0, 1)}, n=3).columns(["a"]), "cannot be 3 values"),
        (lambda: FullGrid({"a": (0, 1), "b": (0, 1)}, n=10**4).columns(()), "100,000,000 runs"),
        (lambda: DesignTable({}), "no column"),
        (lambda: DesignTable({"a": []}), "0 runs"),
        (lambda: DesignTable({"a": [1, 2], "b": [1]}), "different lengths"),
        (lambda: DesignTable({"a": [[1, 2]]}), "shape"),
    ],
)
def test_a_design_without_meaning_is_refused(make: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()  # type: ignore[operator]


def test_a_number_that_is_no_power_of_two_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert len(Sobol({"a": (0, 1)}, n=100).columns(())["a"]) == 100
    assert "no power of two" in caplog.text
    assert "64 or 128" in caplog.text


def test_a_table_of_another_program_is_read(tmp_path: Path) -> None:
    file = tmp_path / "design.csv"
    file.write_text('﻿"a.k", b\n1.5,true\n2,false\n', encoding="utf-8")
    design: Design = DesignTable.read(file)
    assert design.columns(()) == {"a.k": ["1.5", "2"], "b": ["true", "false"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column"),
        ("a,a\n1,2\n", "repeated name"),
        ("a,\n1,2\n", "empty or repeated"),
        ("a,b\n1\n", "run 1: 1 value, expected 2"),
        ('a\n"1\n', "is not a table in CSV"),
        ("a\n\xff\n", "not text in UTF-8"),
    ],
)
def test_a_table_that_is_none_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "design.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises((FileError, OptionError), match=message):
        DesignTable.read(file)

"""What a user gives becomes a value of the variable's type, or is refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fmimaster.base.errors import DescriptionError
from fmimaster.system.conversions import parse_value
from fmimaster.system.model import Causality, DataType, Variability, Variable


def variable(kind: DataType, **attributes: Any) -> Variable:
    return Variable("p", 1, kind, Causality.PARAMETER, Variability.FIXED, **attributes)


def parsed(kind: DataType, value: Any, **attributes: Any) -> list[Any]:
    values = parse_value(variable(kind, **attributes), value, "Start value of 'pump.p'")
    assert values.dtype == kind.dtype
    return values.tolist()  # type: ignore[no-any-return]


ALARM = {"off": 1, "on": 2}


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (DataType.FLOAT64, "0.1", 0.1),
        (DataType.FLOAT64, 3, 3.0),
        (DataType.FLOAT32, "0.1", float(np.float32(0.1))),
        (DataType.INT32, "-7", -7),
        (DataType.INT32, 7.0, 7),
        (DataType.INT32, -(2**31), -(2**31)),
        (DataType.UINT8, 255, 255),
        (DataType.UINT8, 0, 0),
        (DataType.INT64, str(2**63 - 1), 2**63 - 1),
        (DataType.BOOLEAN, "true", True),
        (DataType.BOOLEAN, "0", False),
        (DataType.BOOLEAN, True, True),
        (DataType.BOOLEAN, 1, True),
        (DataType.STRING, "two words", "two words"),
        (DataType.BINARY, "00ff", b"\x00\xff"),
        (DataType.BINARY, b"\x00", b"\x00"),
    ],
)
def test_a_value_may_be_text_or_of_the_type(kind: DataType, given: Any, value: Any) -> None:
    assert parsed(kind, given) == [value]


@pytest.mark.parametrize("given", ["on", 2, "2"])
def test_an_item_of_an_enumeration_may_be_named_or_numbered(given: Any) -> None:
    assert parsed(DataType.INT64, given, enumeration=ALARM) == [2]


@pytest.mark.parametrize("given", ["1 2 3 4", [[1, 2], [3, 4]], (1, 2, 3, 4), np.arange(1, 5)])
def test_an_array_is_given_in_row_major_order(given: Any) -> None:
    assert parsed(DataType.FLOAT64, given, shape=(2, 2)) == [1.0, 2.0, 3.0, 4.0]


def test_one_value_is_for_all_elements() -> None:
    assert parsed(DataType.INT32, 5, shape=(3,)) == [5, 5, 5]


def test_a_text_for_an_array_of_strings_is_one_text() -> None:
    assert parsed(DataType.STRING, "two words", shape=(2,)) == ["two words", "two words"]


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (DataType.FLOAT64, "fast", r"'fast' is not a value of type Float64"),
        (DataType.INT32, 1.5, r"expected an integer from -2147483648 to 2147483647"),
        (DataType.INT32, 2**31, r"expected an integer from"),
        (DataType.UINT8, -1, r"expected an integer from 0 to 255"),
        (DataType.INT32, float("nan"), r"nan is not a value of type Int32"),
        (DataType.BOOLEAN, "yes", r"expected true or false"),
        (DataType.BOOLEAN, 2, r"expected true or false"),
        (DataType.STRING, 1, r"1 is not a value of type String"),
        (DataType.BINARY, "0g", r"'0g' is not a value of type Binary"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(kind: DataType, given: Any, message: str) -> None:
    with pytest.raises(DescriptionError, match=rf"(?i)^start value of 'pump\.p': .*{message}"):
        parsed(kind, given)


def test_a_wrong_item_of_an_enumeration_gets_a_suggestion() -> None:
    with pytest.raises(DescriptionError, match=r"Expected one of off, on.* Did you mean 'on'\?"):
        parsed(DataType.INT64, "onn", enumeration=ALARM)


@pytest.mark.parametrize("given", ["1 2", [1, 2, 3, 4]])
def test_a_wrong_number_of_elements_is_refused_with_both_numbers(given: Any) -> None:
    with pytest.raises(DescriptionError, match=r"got [24] values, expected 3 \(shape \(3,\)\)"):
        parsed(DataType.FLOAT64, given, shape=(3,))


def test_a_scalar_takes_one_value_only() -> None:
    with pytest.raises(DescriptionError, match=r"got 2 values, expected 1\.$"):
        parsed(DataType.FLOAT64, [1, 2])

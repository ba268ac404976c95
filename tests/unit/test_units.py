"""Units are converted by what they measure."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmimaster.base.errors import DescriptionError
from fmimaster.system.model import Transformation, Unit
from fmimaster.system.units import convert_units, describe

#                kg m  s  A  K mol cd rad
SPEED = (0, 1, -1, 0, 0, 0, 0, 0)
TORQUE = (1, 2, -2, 0, 0, 0, 0, 0)
TEMPERATURE = (0, 0, 0, 0, 1, 0, 0, 0)
FREQUENCY = (0, 0, -1, 0, 0, 0, 0, 0)
ANGULAR_SPEED = (0, 0, -1, 0, 0, 0, 0, 1)

METRES_PER_SECOND = Unit("m/s", SPEED)
KILOMETRES_PER_HOUR = Unit("km/h", SPEED, 1 / 3.6)
KELVIN = Unit("K", TEMPERATURE)
CELSIUS = Unit("degC", TEMPERATURE, 1.0, 273.15)
FAHRENHEIT = Unit("degF", TEMPERATURE, 5 / 9, 273.15 - 32 * 5 / 9)

finite = st.floats(-1e6, 1e6)
factors = finite.filter(lambda x: abs(x) > 1e-6)


def converted(value: float, source: Unit, target: Unit) -> float:
    transformation, _ = convert_units(source, target, "x")
    return transformation.factor * value + transformation.offset


def test_values_are_converted_by_factor_and_offset() -> None:
    assert converted(36.0, KILOMETRES_PER_HOUR, METRES_PER_SECOND) == pytest.approx(10.0, rel=1e-15)
    assert converted(20.0, CELSIUS, KELVIN) == 293.15
    assert converted(293.15, KELVIN, CELSIUS) == pytest.approx(20.0, rel=1e-13)
    assert converted(212.0, FAHRENHEIT, CELSIUS) == pytest.approx(100.0, rel=1e-13)


def test_a_conversion_is_said_in_words() -> None:
    _, note = convert_units(KILOMETRES_PER_HOUR, METRES_PER_SECOND, "x")
    assert note == "km/h (0.277778 m·s⁻¹) to m/s (m·s⁻¹)"


@given(factors, finite)
def test_equal_units_give_exactly_the_identity_whatever_their_names(
    factor: float, offset: float
) -> None:
    one, other = (Unit(name, TEMPERATURE, factor, offset) for name in "ab")
    assert convert_units(one, other, "x") == (Transformation(1.0, 0.0), "")


@given(factors, finite, factors, finite, finite)
def test_there_and_back_is_the_identity(
    factor_a: float, offset_a: float, factor_b: float, offset_b: float, value: float
) -> None:
    a = Unit("a", TEMPERATURE, factor_a, offset_a)
    b = Unit("b", TEMPERATURE, factor_b, offset_b)
    # rounding is relative to the largest number on the way, seen in the unit of the value
    scale = (abs(factor_a * value) + abs(offset_a) + abs(offset_b)) / abs(factor_a)
    assert converted(converted(value, a, b), b, a) == pytest.approx(value, rel=0, abs=1e-14 * scale)


def test_equal_names_do_not_make_units_equal() -> None:
    short, metric = Unit("ton", (1, *[0] * 7), 907.18474), Unit("ton", (1, *[0] * 7), 1000.0)
    assert converted(1.0, short, metric) == pytest.approx(0.90718474)


def test_radians_count_as_dimensionless_and_are_mentioned() -> None:
    transformation, note = convert_units(Unit("1/s", FREQUENCY), Unit("rad/s", ANGULAR_SPEED), "x")
    assert transformation.is_identity
    assert note == "1/s (s⁻¹) to rad/s (s⁻¹·rad), rad taken as 1"


@pytest.mark.parametrize(
    ("source", "target", "is_noted"),
    [
        (None, None, False),
        (Unit("rpm"), Unit("rpm"), False),
        (Unit("m/s"), METRES_PER_SECOND, False),
        (Unit("rpm"), Unit("1/min"), True),
        (Unit("rpm"), METRES_PER_SECOND, True),
        (None, METRES_PER_SECOND, True),
        (METRES_PER_SECOND, None, True),
    ],
)
def test_what_is_not_explained_is_passed_as_it_is(
    source: Unit | None, target: Unit | None, is_noted: bool
) -> None:
    transformation, note = convert_units(source, target, "x")
    assert transformation.is_identity
    assert note.endswith("not compared: passed unchanged") == bool(note) == is_noted


def test_an_unknown_unit_is_named_in_the_note() -> None:
    _, note = convert_units(Unit("rpm"), None, "x")
    assert note == "rpm (unexplained) to no unit, not compared: passed unchanged"


def test_units_of_different_things_are_refused_with_both_in_words() -> None:
    with pytest.raises(
        DescriptionError,
        match=r"Connection 'a\.x -> b\.u': N\.m \(kg·m²·s⁻²\) cannot become km/h "
        r"\(0\.277778 m·s⁻¹\), because they are units of different quantities",
    ):
        convert_units(Unit("N.m", TORQUE), KILOMETRES_PER_HOUR, "Connection 'a.x -> b.u'")


@pytest.mark.parametrize("factor", [0.0, math.nan, math.inf])
def test_a_factor_that_no_unit_can_have_is_refused(factor: float) -> None:
    with pytest.raises(DescriptionError, match=r"unit odd has factor .* expected finite"):
        convert_units(METRES_PER_SECOND, Unit("odd", SPEED, factor), "x")


def test_units_are_described_by_name_and_base_units() -> None:
    assert describe(METRES_PER_SECOND) == "m/s (m·s⁻¹)"
    assert describe(CELSIUS) == "degC (K + 273.15)"
    assert describe(Unit("%", (0,) * 8, 0.01)) == "% (0.01)"
    assert describe(Unit("-", (0,) * 8)) == "- (1)"

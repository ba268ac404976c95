"""Intervals of clocks that a user gives: start values of clocks, checked against the kind of the clock."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster import DescriptionError, SystemBuilder
from fmimaster.system import ClockInterval
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import DataType

TENTH = Fraction(1, 10)


def unit(kind: str, interval: Fraction | None = None, *, output: bool = False) -> PythonFmu:
    """An FMU with the clock ``tick`` of this kind."""
    clock = {
        "type": DataType.CLOCK,
        "clock": ClockAttributes(IntervalVariability(kind), interval, shift=Fraction(1, 4)),
    }
    variables: dict[str, Any] = (
        {"outputs": {"tick": lambda v: False}} if output else {"inputs": {"tick": False}}
    )
    return PythonFmu(**variables, attributes={"tick": clock}, has_event_mode=True)


def planned(fmu: PythonFmu, value: Any) -> ClockAttributes:
    """The clock ``tick`` as it is planned with this start value."""
    plan = plan_of({"a": fmu}, start_values={"a.tick": value})
    variable = plan.instances[0].model.variable("tick")
    assert variable is not None
    assert variable.clock is not None
    return variable.clock


@pytest.mark.parametrize("value", [0.1, "0.1", "1/10", TENTH, ClockInterval(TENTH)])
@pytest.mark.parametrize("kind", ["fixed", "tunable"])
def test_the_start_value_of_a_clock_is_its_interval(kind: str, value: Any) -> None:
    clock = planned(unit(kind, Fraction(1)), value)
    assert (clock.interval, clock.shift) == (TENTH, Fraction(1, 4))


def test_a_clock_that_nothing_drives_can_be_scheduled_by_the_importer() -> None:
    assert not ClockAttributes().is_time_based
    clock = planned(unit("triggered"), ClockInterval(0.1, shift="1/3"))
    assert (clock.interval, clock.shift) == (TENTH, Fraction(1, 3))
    assert clock.is_time_based


@pytest.mark.parametrize(
    ("kind", "interval"),
    [
        ("constant", TENTH),
        ("fixed", None),
        ("tunable", None),
        ("changing", None),
        ("countdown", None),
    ],
)
def test_the_interval_of_another_clock_is_the_decision_of_the_fmu(
    kind: str, interval: Fraction | None
) -> None:
    with pytest.raises(DescriptionError, match=r"the FMU decides when the clock 'a\.tick' ticks"):
        planned(unit(kind, interval), 0.1)


def test_an_output_clock_takes_no_interval() -> None:
    with pytest.raises(DescriptionError, match=r"the clock 'a\.tick' is not an input"):
        planned(unit("triggered", output=True), 0.1)


@pytest.mark.parametrize("value", [0, -0.1, "-1/3"])
def test_an_interval_is_above_0(value: Any) -> None:
    with pytest.raises(DescriptionError, match=r"'a\.tick': The interval of a clock is .* above 0"):
        planned(unit("triggered"), value)


@pytest.mark.parametrize("value", ["soon", float("nan"), float("inf"), "1/0", b"x"])
def test_an_interval_is_a_number(value: Any) -> None:
    with pytest.raises(DescriptionError, match="is not a time"):
        planned(unit("triggered"), value)


def test_a_shift_is_0_or_more() -> None:
    with pytest.raises(DescriptionError, match="shift of a clock is -1 s"):
        ClockInterval(1, shift=-1)


def test_a_priority_is_a_whole_number() -> None:
    system = SystemBuilder()
    system.add("a", "a.fmu", priority=-3)
    system.add("b", "b.fmu")
    assert [c.priority for _, c in system.build().components()] == [-3, None]
    for wrong in (1.5, "first", True):
        with pytest.raises(DescriptionError, match="expected a whole number"):
            system.add("c", "c.fmu", priority=wrong)  # type: ignore[arg-type]

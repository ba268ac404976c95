"""Two runs, the second with half the steps: differences, and values extrapolated to steps of length 0."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fmimaster import OptionError, Results
from fmimaster.front.accuracy_pair import Pair, column_of, half
from fmimaster.steps import PID, FixedStep, Halved, Locate, MultiRate, PowerResidual, Ramp

COARSE = np.linspace(0.0, 1.0, 11)
FINE = np.linspace(0.0, 1.0, 21)


def rows(time: np.ndarray, error: float) -> Results:
    """``sin(t)`` with an error that grows over time, in m."""
    return Results(time=time, columns={"a.y": np.sin(time) + error * time}, units={"a.y": "m"})


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_difference_is_the_error_of_the_fine_run(order: int) -> None:
    pair = Pair(rows(COARSE, 2.0**order * 1e-3), rows(FINE, 1e-3), ["a.y"], order)
    (found,) = pair.differences()
    assert found.largest == pytest.approx(1e-3)
    assert (found.time, found.unit) == (1.0, "m")
    # the root mean square of 1e-3 * t over 0..1 by the trapezoidal rule, whose error is step**2 / 6
    assert found.rms == pytest.approx(1e-3 * np.sqrt(1 / 3 + 0.1**2 / 6))
    assert found.relative == found.rms / (np.sin(1.0) + 1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_extrapolated_values_have_no_error_of_that_order(order: int) -> None:
    pair = Pair(rows(COARSE, 2.0**order * 1e-3), rows(FINE, 1e-3), ["a.y"], order)
    assert pair.extrapolated()["a.y"] == pytest.approx(np.sin(FINE), abs=1e-15)


def test_rows_at_events_do_not_count() -> None:
    coarse = Results(time=[0.0, 1.0, 1.0, 2.0], columns={"y": [0.0, 5.0, -5.0, 0.0]})
    fine = Results(time=[0.0, 0.5, 1.0, 1.5, 2.0], columns={"y": [0.0, 0.1, 0.1, 0.1, 0.0]})
    assert Pair(coarse, fine, ["y"]).differences()[0].largest == 0.0


@pytest.mark.parametrize(("later", "largest"), [(1.001, 0.0), (1.1, 10.0)])
def test_rows_between_the_times_of_one_event_do_not_count(later: float, largest: float) -> None:
    """A jump from 5 to -5 at t = 1 s, and a little later in the other run; if much later, it is an error."""
    behind = [1.0005, later + 1e-3, 3.0]
    coarse = Results(time=[0.0, 1.0, 1.0, *behind], columns={"y": [5.0, 5.0, *[-5.0] * 4]})
    time = [0.0, behind[0], later, later, *behind[1:]]
    fine = Results(time=time, columns={"y": [5.0, 5.0, 5.0, -5.0, -5.0, -5.0]})
    assert Pair(coarse, fine, ["y"]).differences()[0].largest == largest


def test_the_worst_column_comes_first_and_nan_is_worse_than_any() -> None:
    coarse = Results(time=[0.0, 1.0], columns={"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [1.0, 1.0]})
    values = {"a": [1.0, 1.1], "b": [1.0, 1.5], "c": [1.0, np.nan]}
    found = Pair(coarse, Results(time=[0.0, 1.0], columns=values), ["*"]).differences()
    assert [d.name for d in found] == ["c", "b", "a"]


def test_elements_of_arrays_are_columns_of_their_own() -> None:
    coarse = Results(time=[0.0, 1.0], columns={"x": [[1.0, 1.0], [1.0, 1.0]]}, units={"x": "m"})
    fine = Results(time=[0.0, 1.0], columns={"x": [[1.0, 1.0], [1.0, 2.0]]}, units={"x": "m"})
    worst, other = Pair(coarse, fine, ["x"]).differences()
    assert (worst.name, worst.unit, worst.largest, other.largest) == ("x[2]", "m", 1.0, 0.0)


def test_a_scalar_may_have_brackets_in_its_name() -> None:
    """As the elements of an array in FMI 2.0: "tank.x[1]" is the name of a variable."""
    results = Results(
        time=[0.0, 1.0],
        columns={"x[1]": [1.0, 1.0], "y": np.ones((2, 2))},
        units={"x[1]": "m", "y": "s"},
    )
    found = {d.name: d.unit for d in Pair(results, results, ["x[1]", "y"]).differences()}
    assert found == {"x[1]": "m", "y[1]": "s", "y[2]": "s"}
    assert column_of("x[1]", results.columns) == "x[1]"
    assert column_of("y[2]", results.columns) == "y"


def test_runs_without_common_time_are_refused() -> None:
    for apart in (COARSE + 1.0, COARSE[:0]):
        with pytest.raises(OptionError, match="have fewer than two points of time in common"):
            Pair(rows(COARSE, 0.0), rows(apart, 0.0), ["a.y"])


def test_between_its_rows_the_fine_run_is_smooth() -> None:
    """Steps of a ramp: no point of one run is one of the other."""
    points = np.concatenate([[0.0], 0.013 + FINE[:-1], [1.0]])
    (found,) = Pair(rows(COARSE, 0.0), rows(points, 0.0), ["a.y"]).differences()
    assert found.largest < 1e-5


@pytest.mark.parametrize("rows_at_jump", [1, 2])
def test_a_jump_does_not_spread_into_the_steps_beside_it(rows_at_jump: int) -> None:
    """One step is the jump, or the second row of its time is behind it."""
    at_jump = [1.0] * (rows_at_jump - 1)
    time = np.array([0.0, 0.3, 0.7, 1.0, *at_jump, 1.0001, 1.4, 1.7, 2.0])
    values = np.where(np.arange(len(time)) < 4, 5.0, -5.0)
    coarse = Results(time=[0.0, 0.5, 0.9, 1.1, 1.5, 2.0], columns={"y": [5.0] * 3 + [-5.0] * 3})
    found = Pair(coarse, Results(time=time, columns={"y": values}), ["y"]).differences()
    assert found[0].largest < 1e-12


def test_only_the_time_that_both_runs_have_is_compared() -> None:
    short = rows(FINE[:11], 0.0)
    coarse = replace(
        rows(COARSE, 0.0), columns={"a.y": np.where(COARSE > 0.5, 9.0, np.sin(COARSE))}
    )
    assert Pair(coarse, short, ["a.y"]).differences()[0].largest == 0.0


def test_a_fixed_step_is_halved_on_its_grid() -> None:
    assert half(FixedStep("1/60"), rows(COARSE, 0.0)).exact_size == Fraction(1, 120)


def test_each_of_several_step_sizes_is_halved() -> None:
    rule = half(MultiRate("1/10", {"a": "1/30"}), rows(COARSE, 0.0))
    assert [rule.size_of(name) for name in ("a", "b")] == [Fraction(1, 60), Fraction(1, 20)]


def test_changes_are_located_in_steps_of_half_the_size_too() -> None:
    assert half(Locate(0.1, tolerance=1e-9), rows(COARSE, 0.0)) == Locate(
        Fraction(1, 20), tolerance=1e-9
    )


def test_a_ramp_of_half_the_size_finds_its_own_events() -> None:
    assert half(Ramp("1/10", first=0.5), rows(COARSE, 0.0)) == Ramp(Fraction(1, 20), first=0.5)


def test_other_steps_are_halved_where_they_were_but_not_at_events() -> None:
    time = [0.0, 0.1, 0.15, 0.15, 0.2]
    rule = half(PID(0.1, estimators=(PowerResidual(),)), rows(np.array(time), 0.0))
    assert rule == Halved(times=(0.0, 0.1, 0.2))

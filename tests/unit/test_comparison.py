"""Results beside a reference: deviations with known sizes."""

from __future__ import annotations

from math import inf, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster.base.errors import OptionError
from fmimaster.results.comparison import Comparison
from fmimaster.results.results import Results

TIME = np.linspace(0.0, 1.0, 11)


def table(values: object, time: object = TIME, name: str = "x", unit: str = "m") -> Results:
    return Results(time=time, columns={name: values}, units={name: unit})  # type: ignore[arg-type, dict-item]


def compared(results: Results, reference: Results, tolerance: float = 0.01) -> Comparison:
    return results.compare(reference, tolerance=tolerance)


def test_equal_results_do_not_deviate() -> None:
    found = compared(table(TIME), table(TIME))
    assert [d.relative for d in found.deviations] == [0.0]
    assert found.is_within


def test_a_deviation_has_its_size_its_time_and_its_part_of_the_range() -> None:
    (d,) = compared(table(2 * TIME + 0.3 * (TIME == 0.5)), table(2 * TIME)).deviations
    assert (d.name, d.unit, d.range, d.time) == ("x", "m", 2.0, 0.5)
    assert d.largest == pytest.approx(0.3)
    assert d.rms == pytest.approx(0.3 * sqrt(0.1))  # of the trapezoidal rule: one of ten intervals
    assert d.relative == pytest.approx(0.15 * sqrt(0.1))


def test_the_reference_is_interpolated_to_the_times_of_the_results() -> None:
    coarse = table([0.0, 1.0], time=[0.0, 1.0])
    assert compared(table(TIME), coarse).deviations[0].largest == pytest.approx(0.0, abs=1e-15)


def test_integers_of_the_reference_are_held() -> None:
    steps = table([0, 1], time=[0.0, 1.0])
    assert compared(table([0] * 10 + [1]), steps).deviations[0].largest == 0.0


def test_only_the_common_time_counts() -> None:
    found = compared(table(TIME), table([0.2, 0.4], time=[0.2, 0.4]))
    assert (found.start_time, found.stop_time) == (0.2, 0.4)
    assert found.is_within


def test_at_a_jump_both_sides_are_right() -> None:
    jump = table([0.0, 0.0, 1.0, 1.0], time=[0.0, 0.5, 0.5, 1.0])
    assert compared(table(np.where(TIME < 0.5, 0.0, 1.0)), jump).deviations[0].largest == 0.0
    assert compared(table(np.where(TIME <= 0.5, 0.0, 1.0)), jump).deviations[0].largest == 0.0


def test_a_jump_a_little_late_counts_as_long_as_it_lasts() -> None:
    """The root mean square decides, so that an event that another tool finds 1 us later is no failure."""
    late = [0.0, 0.5, 0.500001, 0.500001, 1.0]
    jump = table([0.0, 0.0, 1.0, 1.0], time=[0.0, 0.5, 0.5, 1.0])
    (d,) = compared(table([0.0, 0.0, 0.0, 1.0, 1.0], time=late), jump).deviations
    assert d.largest == 1.0
    assert d.relative == pytest.approx(sqrt(0.5e-6))  # squares from 0 to 1 in 1 us


def test_a_constant_is_measured_by_its_size() -> None:
    assert compared(table(0 * TIME + 1.01), table(0 * TIME + 1.0)).deviations[0].range == 1.0
    assert compared(table(0 * TIME + 1e-9), table(0 * TIME)).deviations[0].relative == inf


@pytest.mark.parametrize(("here", "there"), [(nan, 1.0), (1.0, nan), (inf, 1.0)])
def test_what_is_no_number_deviates_without_limit(here: float, there: float) -> None:
    found = compared(table([0.0, here], time=[0.0, 1.0]), table([0.0, there], time=[0.0, 1.0]))
    assert found.deviations[0].relative == inf
    assert not found.is_within


def test_nan_and_infinity_in_both_are_equal() -> None:
    same = table([0.0, nan, inf, 1.0], time=[0.0, 1.0, 2.0, 3.0])
    assert compared(same, same).deviations[0].largest == 0.0


def ticks(*at: tuple[float, float], until: float = 1.0) -> Results:
    """A clocked variable: each tick is (time, value), in a row after the one before it at that time."""
    times = sorted({0.0, until, *(t for t, _ in at)})
    rows = [(t, value) for t in times for value in (None, *(v for s, v in at if s == t))]
    values = np.ma.MaskedArray([v or 0.0 for _, v in rows], [v is None for _, v in rows])
    return table(values, time=[t for t, _ in rows])


def test_values_at_ticks_are_compared_tick_by_tick() -> None:
    reference = ticks((0.25, 1.0), (0.5, 2.0), (0.5, 3.0))
    assert compared(reference, reference).is_within
    (d,) = compared(ticks((0.25, 1.0), (0.5, 3.0), (0.5, 2.0)), reference).deviations
    assert (d.alone, d.largest, d.time) == (0, 1.0, 0.5)
    assert d.rms == pytest.approx(sqrt(2 / 3))


@pytest.mark.parametrize(
    ("ours", "alone", "time"),
    [
        ([(0.25, 1.0)], 1, 0.5),
        ([(0.25, 1.0), (0.5, 2.0), (0.5, 2.0)], 1, 0.5),
        ([(0.25, 1.0), (0.4, 2.0)], 2, 0.4),
        ([], 2, 0.25),
    ],
)
def test_a_tick_that_only_one_of_the_two_has_is_a_deviation(
    ours: list[tuple[float, float]], alone: int, time: float
) -> None:
    found = compared(ticks(*ours), ticks((0.25, 1.0), (0.5, 2.0)), tolerance=1e9)
    (d,) = found.deviations
    assert (d.alone, d.time, d.relative, found.is_within) == (alone, time, inf, False)
    assert f"beyond: {alone} value" in str(found)


def test_ticks_in_a_reference_need_no_rows_between_them() -> None:
    reference = table([1.0, 2.0, 0.0], time=[0.25, 0.5, 0.75])
    assert compared(ticks((0.25, 1.0), (0.5, 2.0), (0.75, 0.0)), reference).is_within
    assert not compared(
        ticks((0.25, 1.0), (0.5, 2.0)), table([1.0, 2.0, 0.0], time=[0.25, 0.5, 0.6])
    ).is_within


def existing(start: float, end: float, time: Any = TIME) -> Results:
    """A variable of a component that exists in a part of the run: twice the time."""
    absent = (time < start - 1e-9) | (time > end + 1e-9)
    return table(np.ma.MaskedArray(2 * np.asarray(time), absent), time=time)


def test_values_of_a_part_of_the_run_are_interpolated_in_it() -> None:
    fine = np.linspace(0.0, 1.0, 101)
    found = compared(existing(0.3, 0.6, fine), existing(0.3, 0.6))
    assert found.deviations[0].largest == pytest.approx(0.0, abs=1e-15)
    assert found.is_within


@pytest.mark.parametrize(
    ("start", "end", "alone"), [(0.2, 0.6, 1), (0.3, 0.8, 2), (0.5, 0.6, 1), (0.9, 1.0, 4)]
)
def test_a_part_of_the_run_in_which_only_one_has_values_is_a_deviation(
    start: float, end: float, alone: int
) -> None:
    (d,) = compared(existing(start, end), existing(0.3, 0.6)).deviations
    assert (d.alone, d.relative) == (alone, inf)


def test_the_largest_part_of_its_range_comes_first() -> None:
    results = Results(time=TIME, columns={"a": TIME + 0.1, "b": 100 * TIME + 1, "c": TIME})
    reference = Results(time=TIME, columns={"c": TIME, "b": 100 * TIME, "a": TIME})
    assert [d.name for d in results.compare(reference).deviations] == ["a", "b", "c"]


def test_as_text_it_is_a_table(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"x": TIME, "y": TIME, "mode": ["off"] * 11}
    Results(time=TIME, columns=columns).write(tmp_path / "reference.csv")
    results = Results(time=TIME, columns={"x": TIME, "y": TIME + 0.25}, units={"y": "m"})
    text = str(results.compare(tmp_path / "reference.csv"))
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "variable unit RMS deviation of the range largest at t",
        "y m 0.25 25 % 0.25 0 s beyond",
        "x 0 0 % 0 0 s",
        "compared with the reference from t = 0 s to 1 s: 1 of 2 variables beyond the tolerance of 1 %",
        "not compared, because the results lack them: mode",
    ]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (table(TIME, name="y"), "The results have none of the columns of the reference: y. "),
        (
            table(TIME, TIME + 5),
            "No row of the results is in the time range of the reference, t = 5 s",
        ),
        (
            table([], []),
            "No row of the results is in the time range of the reference, which has no",
        ),
        (table(TIME, unit="mm"), "Column 'x' is in mm in one table and in m in another"),
    ],
)
def test_what_cannot_be_compared_is_an_error(reference: Results, message: str) -> None:
    with pytest.raises(OptionError) as error:
        table(TIME).compare(reference)
    assert str(error.value).startswith(message)


def test_a_negative_tolerance_is_an_error() -> None:
    with pytest.raises(OptionError, match=r"The tolerance of a comparison is -1; expected"):
        compared(table(TIME), table(TIME), tolerance=-1.0)

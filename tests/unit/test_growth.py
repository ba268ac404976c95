"""Outputs that grow without end: which signals are found, and that no others are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from python_fmu import PythonFmu

from fmimaster.base.errors import AccuracyError, AccuracyWarning, NotANumberError
from fmimaster.front.simulation import Simulation
from fmimaster.kernel import kernel
from fmimaster.results.growth import Diverging, Growth, Watched, _ranges, _ranges_by_numpy

Array = NDArray[np.float64]
TIME = np.linspace(0.0, 10.0, 2001)
Make = Callable[..., Simulation]


def found(values: Array, usual: float = 1.0, blocks: int = 7) -> tuple[Diverging, ...]:
    """What is found in a column, given in blocks of different sizes."""
    growth = Growth([Watched("y", "float", slice(0, 1), usual, "m")])
    time = np.linspace(0.0, 10.0, len(values))
    ends = np.unique(np.geomspace(1, len(values), blocks).astype(int))
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        growth.look(time[begin:end], {"float": values[begin:end, None]})
    return growth.diverging()


@pytest.mark.parametrize(
    "values",
    [
        0.1 * np.exp(TIME),
        np.exp(0.7 * TIME) * np.sin(5 * TIME),
        5.0 + 1e-3 * np.exp(1.5 * TIME) * np.cos(40 * TIME),
        np.tile([1.0, -1.0], 40) * 1.5 ** np.arange(80),
        1.2 ** np.arange(40.0),
        np.tile([1.0, 0.5, -1.0], 7) * 2.0 ** np.arange(21),
    ],
    ids=["exponential", "oscillation", "around an offset", "alternating", "few rows", "21 rows"],
)
def test_exponential_growth_is_found(values: Array) -> None:
    (one,) = found(values)
    assert one.largest == np.abs(values).max()


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("rows", [21, 40, 101, 777, 2001])
def test_a_power_of_time_is_no_divergence(power: int, rows: int) -> None:
    time = np.linspace(0.0, 10.0, rows)
    assert not found(100.0 * time**power)
    if rows > 100:  # enough for the sine
        assert not found(100.0 * time**power * np.sin(9 * time))


@pytest.mark.parametrize(
    "values",
    [
        1e6 * np.sin(TIME),
        1e6 * (1.0 - np.exp(-TIME)),
        1e3 / (1.0 + np.exp(10.0 - 2.0 * TIME)),
        np.where(TIME < 9.0, 0.0, 1e6),
        1e5 * np.exp(-TIME) * np.sin(30 * TIME),
        np.zeros_like(TIME),
        5.0 * np.exp(0.1 * TIME),
        100.0 * np.cumsum(np.sin(50 * TIME) > 0),
        np.full_like(TIME, 1e9),
    ],
    ids=["sine", "settling", "logistic", "step", "decay", "zero", "slow", "stairs", "constant"],
)
def test_a_signal_that_does_not_grow_without_end_is_none(values: Array) -> None:
    assert not found(values)


def test_growth_that_stays_usual_is_none() -> None:
    values = 1e-3 * np.exp(TIME)
    assert not found(values, usual=10.0)
    assert not found(values + 50.0)
    assert found(values, usual=1e-3)


def test_growth_is_told_with_its_start_and_its_factor() -> None:
    values = np.exp(2.0 * (TIME - 4.0)) - np.exp(-8.0)
    (one,) = found(values)
    assert one.time == 0.0
    assert one.factor == pytest.approx(np.exp(2.0 * one.period), rel=0.2)
    assert "the output 'y' grows from t = " in one.text()
    assert "2 other outputs do likewise" in one.text(2)


def test_growth_that_begins_in_the_last_half_is_found() -> None:
    values = np.exp(2.0 * np.maximum(TIME - 6.0, 0.0)) * np.sin(20.0 * TIME)
    (one,) = found(values)
    assert one.time == pytest.approx(6.0, abs=0.7)


def test_of_an_array_the_element_that_grows_most_is_told() -> None:
    growth = Growth([Watched("y", "float", slice(0, 3), 1.0, "m")])
    elements = [np.exp(TIME), np.exp(2.0 * TIME), np.exp(1.5 * TIME)]
    growth.look(TIME, {"float": np.stack(elements, axis=1)})
    (one,) = growth.diverging()
    assert one.largest == np.exp(20.0)


def test_how_rows_are_handed_on_does_not_matter() -> None:
    values = np.exp(0.7 * TIME) * np.sin(5 * TIME)
    assert found(values, blocks=2) == found(values, blocks=2) != ()
    (few,), (many,) = found(values, blocks=2), found(values, blocks=500)
    assert few.largest == many.largest
    assert few.factor == pytest.approx(many.factor, rel=0.2)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 1, 5, 6, 7, 99])
@pytest.mark.parametrize("is_built", [True, False])
def test_no_row_with_a_wrong_value_passes_for_finite(
    wrong: float, row: int, is_built: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first row, one in the midst, and those at an event, which are not later than the row before."""
    if not is_built:
        monkeypatch.setattr("fmimaster.results.growth.kernel", lambda: None)
    times, values = np.arange(100.0), np.ones((100, 3))
    times[6:8] = times[5]
    watched = [Watched("y", "float", slice(0, 3), 1.0, "m")]
    assert Growth(watched).look(times, {"float": values}) == {"float"}
    values[row, 1] = wrong
    assert Growth(watched).look(times, {"float": values}) == set()


def leaps(
    values: Array, time: Array, blocks: int = 7, *, is_coupled: bool = True
) -> tuple[str, ...]:
    growth = Growth([Watched("y", "float", slice(0, 1), 1.0, "m", is_coupled)])
    for part in np.array_split(np.arange(len(time)), blocks):
        growth.look(time[part], {"float": values[part, None]})
    return growth.leaping()


@pytest.mark.skipif(kernel() is None, reason="the kernel is not built")
@pytest.mark.parametrize("n", [1, 2, 17, 1000])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 20, 33, 200])
def test_the_kernel_looks_at_rows_as_numpy_does(width: int, n: int) -> None:
    """Also where rows have the same time, where numbers are missing or infinite, and where a part has one row."""
    random = np.random.default_rng(width * n)
    values, before = random.normal(size=(n, width)), random.normal(size=width)
    times = np.cumsum(random.integers(0, 4, n) > 0).astype(float)
    starts = np.unique([0, *random.integers(0, n, 4)])
    unlike = values.copy()
    unlike[random.random(values.shape) < 0.1] = np.nan
    unlike[random.random(values.shape) < 0.1] = np.inf
    for rows in (values, unlike):
        for time_before in (np.nan, times[0], -1.0):
            arguments = times, rows, starts, time_before, before
            found, expected = _ranges(*arguments), _ranges_by_numpy(*arguments)
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
            np.testing.assert_allclose(found[2], expected[2], rtol=1e-12)  # sums in another order
            assert found[3] == expected[3]


@pytest.mark.skipif(kernel() is None, reason="the kernel is not built")
@pytest.mark.parametrize("first", [0, 1, 64, 70, 190])
@pytest.mark.parametrize("width", [1, 4, 5])
def test_groups_of_rows_that_the_kernel_has_seen_are_not_read_again(width: int, first: int) -> None:
    """Parts begin and end in a group, between two, and where no group is complete."""
    ffi, lib = kernel().ffi, kernel().lib
    random, rows = np.random.default_rng(width), 1000
    times, values = (
        np.cumsum(random.integers(0, 4, rows) > 0).astype(np.float64),
        random.normal(size=(rows, width)),
    )
    ranges, later = np.empty((3, rows, width)), np.empty(rows, np.int64)
    k = ffi.new("fm_kernel *", {"times": ffi.from_buffer("double[]", times), "n_rows": 900})
    block, *arrays = (ffi.from_buffer("double[]", a) for a in (values, *ranges))
    k.looked = (block, width, 1, *arrays, ffi.from_buffer("int64_t[]", later))
    lib.fm_look_at_groups(k)
    assert k.looked.n == 900 // lib.FM_GROUP
    starts = np.array([0, 1, 3, 128 - first % 64, 300, 301, 500])
    arguments = times[first:], values[first:], starts, times[max(first - 1, 0)], values[first - 1]
    expected = _ranges_by_numpy(*arguments)
    looked = ffi.addressof(k, "looked")
    for _ in range(2):
        found = _ranges(*arguments, looked)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_allclose(found[2], expected[2], rtol=1e-12)
        assert found[3] == expected[3]
        values[768:829] = np.nan  # in a group whose last rows are read with those behind


@pytest.mark.measured
@pytest.mark.parametrize(
    ("values", "change"),
    [
        (np.sin(np.arange(100.0)), "34 %"),  # 2 sin(1/2) / sqrt 2 of 2
        (np.tile([1.0, -1.0], 50), "100 %"),
        (0.3 * np.sin(0.7 * np.arange(40.0)) + 5.0, "24 %"),
    ],
    ids=["sine", "alternating", "around an offset"],
)
@pytest.mark.parametrize("blocks", [1, 7, 40])
def test_connected_outputs_that_change_much_within_steps_are_told(
    values: Array, change: str, blocks: int
) -> None:
    time = np.arange(float(len(values)))
    (text,) = leaps(values, time, blocks)
    assert text.startswith(f"the output 'y', which feeds another component, changes by {change}")
    assert "step_size (--step-size)" in text
    assert not leaps(values, time, blocks, is_coupled=False)


@pytest.mark.measured
@pytest.mark.parametrize(
    ("values", "time"),
    [
        (np.sin(0.4 * np.arange(100.0)), np.arange(100.0)),
        (np.exp(-2.0 * np.arange(100.0)), np.arange(100.0)),
        (np.tile([1.0, -1.0], 5), np.arange(10.0)),
        (1.0 + 1e-12 * np.tile([1.0, -1.0], 50), np.arange(100.0)),
        (np.repeat(np.tile([1.0, -1.0], 20), 2)[1:], np.repeat(np.arange(40.0), 2)[:79]),
        (np.exp(np.arange(40.0)), np.arange(40.0)),
    ],
    ids=["short steps", "transient", "few steps", "rounding", "jumps at events", "growth"],
)
def test_other_outputs_are_not_told(values: Array, time: Array) -> None:
    assert not leaps(values, time)


# In a run ----------------------------------------------------------------------------------------------------------------


def pair(gain: float) -> dict[str, PythonFmu]:
    """x' = a y and y' = -b x, the exact oscillation of which Jacobi's coupling makes a growing one."""

    def unit(rate: float, x: float) -> PythonFmu:
        def step(v: Any, h: float) -> None:
            v.x += h * rate * v.u

        return PythonFmu(
            inputs={"u": 0.0}, states={"x": x}, outputs={"x": lambda v: v.x}, step=step
        )

    return {"a": unit(gain, 1.0), "b": unit(-gain, 0.0)}


COUPLED = ["a.x -> b.u", "b.x -> a.u"]


def test_a_coupling_that_is_unstable_with_these_steps_is_warned_of(simulation: Make) -> None:
    run = simulation(pair(10.0), COUPLED, step_size=0.1, stop_time=10, algorithm="Jacobi")
    with pytest.warns(AccuracyWarning, match=r"the output '[ab]\.x' grows from t = .*--check-step"):
        results = run.run()
    assert results.statistics.diverging == ("a.x", "b.x")
    assert any("grows from t" in text for text in results.statistics.warnings)


def test_it_is_an_error_where_results_shall_be_accurate(simulation: Make) -> None:
    run = simulation(pair(10.0), COUPLED, step_size=0.1, stop_time=10, strict=True)
    with pytest.raises(AccuracyError, match=r"grows from t"):
        run.run()


def test_short_steps_give_no_warning(simulation: Make) -> None:
    results = simulation(pair(10.0), COUPLED, step_size=1e-3, stop_time=2).run()
    assert not results.statistics.diverging


@pytest.mark.measured
def test_bounded_results_of_steps_that_are_too_long_are_warned_of_unless_their_error_is_known(
    simulation: Make,
) -> None:
    """An oscillation of which a step is the fifth part: without growth, since each unit steps with the newest value."""
    run = simulation(pair(10.0), COUPLED, step_size=0.12, stop_time=6, algorithm="GaussSeidel")
    quick = replace(run, error_estimate=False)
    with pytest.warns(AccuracyWarning, match=r"'[ab]\.x', which feeds .* of its range") as warned:
        results = quick.run()
    assert results.statistics.leaping == (str(warned[0].message),)
    assert results.statistics.leaping[0] in results.statistics.warnings
    with pytest.warns(AccuracyWarning, match="coupling error of '[ab].x'") as warned:
        measured = replace(run, error_estimate=True).run()
    assert len(warned) == 1
    assert not measured.statistics.leaping
    assert not [text for text in measured.statistics.warnings if "which feeds" in text]
    exact = np.cos(10.0 * results.time)
    assert np.abs(results["a.x"] - exact).max() > 1.0


def test_an_infinite_value_is_told_with_the_growth_before(simulation: Make) -> None:
    run = simulation(pair(1e3), COUPLED, step_size=1, stop_time=200, algorithm="Jacobi")
    with pytest.raises(
        NotANumberError, match=r"Until then 'a\.x' has grown exponentially"
    ) as error:
        run.run()
    assert error.value.results is not None
    assert error.value.results.statistics.diverging == ("a.x", "b.x")


def test_half_the_step_shows_what_the_steps_cost(simulation: Make) -> None:
    """Of the explicit Euler method for an oscillation."""
    run = simulation(pair(1.0), COUPLED, step_size=0.01, stop_time=1, algorithm="Jacobi")
    worst = run.check_step().differences()[0]
    # half the error of the longer steps, which is h / 2 of the amplitude at t = 1 s
    assert worst.largest == pytest.approx(0.01 / 4 * np.sin(1.0), rel=0.01)
    assert worst.time == 1.0

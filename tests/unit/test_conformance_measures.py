"""Measures of conformance runs: deviations with known sizes, and FMPy's band as the reference."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from fmimaster.base.errors import FileError, OptionError
from fmimaster.conformance.curve import curves, thinned
from fmimaster.conformance.measures import ConformanceLimits, FmuMeasures, Measure, measure
from fmimaster.conformance.verdict import (
    VERDICTS_FILE,
    ConformanceRun,
    Verdict,
    VerdictCause,
    VerdictOutcome,
    line_of,
)
from fmimaster.results.comparison import jumps
from fmimaster.results.deviations import band, jump_times
from fmimaster.results.results import Results

TIME = np.linspace(0.0, 10.0, 1001)


def table(time: ArrayLike = TIME, **columns: ArrayLike) -> Results:
    return Results(time=time, columns=columns)


def measured(results: Results, reference: Results, **limits: float) -> FmuMeasures:
    return measure(results, reference, 0.0, 10.0, ConformanceLimits(**limits))


@pytest.mark.filterwarnings("ignore:Please import `:DeprecationWarning")  # fmpy's imports of SciPy
def test_the_band_is_that_of_fmpy() -> None:
    fmpy = pytest.importorskip("fmpy.cross_check")
    draw = np.random.default_rng(7)
    known = np.sort(np.concatenate((draw.uniform(0.0, 10.0, 50), [0.0, 5.0, 5.0, 10.0])))
    there = draw.normal(size=len(known)).cumsum()
    values = np.interp(TIME, known, there) + draw.normal(size=len(TIME))
    ours = band(known, there, 0.0, 10.0)
    _, lower, upper, outside = fmpy.validate_signal(TIME, values, known, there, 0.0, 10.0)
    assert (ours.lower == lower).all()
    assert (ours.upper == upper).all()
    assert 0.05 < ours.outside(TIME, values) == outside.mean() < 0.95


def test_columns_that_the_results_lack_are_named_and_the_others_compared() -> None:
    found = measured(table(x=TIME), table(x=TIME, y=TIME, z=TIME))
    assert [m.deviation.name for m in found.measures] == ["x"]
    assert found.passed
    [note] = found.notes
    assert note == "Not compared, because the results lack these columns of the reference: y and z."


def test_an_array_is_compared_in_the_shape_of_the_results() -> None:
    matrix = TIME[:, None, None] * np.array([[1.0, 2.0], [3.0, 4.0]])
    found = measured(table(y=matrix), table(y=matrix.reshape(-1, 4)))
    names = ["y[1,1]", "y[1,2]", "y[2,1]", "y[2,2]"]
    assert sorted(m.deviation.name for m in found.measures) == names
    assert [m.deviation.rms for m in found.measures] == [0.0] * 4


@pytest.mark.parametrize("lacking", [0, 1])
def test_ticks_that_only_one_has_are_a_problem(lacking: int) -> None:
    values = np.ma.MaskedArray(TIME, np.arange(len(TIME)) % 100 != 0)
    less = np.ma.MaskedArray(TIME, values.mask | (np.arange(len(TIME)) < 100 * lacking))
    found = measured(table(x=less), table(x=values))
    expected = f"'x': only one of results and reference has {lacking} value, the first at t = 0 s."
    assert found.problem == (expected if lacking else "")
    (only,) = found.measures
    assert Measure.from_json(json.loads(json.dumps(only.to_json()))) == only
    curves(table(x=less), table(x=values), ["x"])


def test_a_tenth_of_the_samples_may_be_outside_the_band() -> None:
    reference = table(x=TIME)
    assert measured(table(x=TIME + 5.0 * (TIME < 1.0)), reference).passed
    found = measured(table(x=TIME + 5.0 * (TIME < 1.1)), reference)
    assert found.problem == (
        "'x': 11 % of the samples are outside the band around the reference; the limit is 10 %."
    )


def test_a_value_that_is_no_number_is_outside_the_band() -> None:
    x = np.where(TIME < 5.0, TIME, np.nan)
    (found,) = measured(table(x=x), table(x=TIME)).measures
    assert found.outside == pytest.approx(0.5, abs=0.001)
    assert measured(table(x=x), table(x=x)).passed


def test_each_limit_can_be_exceeded() -> None:
    results, reference = table(x=1.05 * TIME), table(x=TIME)
    assert measured(results, reference).passed
    # the deviation is t / 20: its root mean square over 10 s is 0.5 / sqrt(3), its range 10
    assert "2.89 % of the range" in measured(results, reference, relative_rms=0.028).problem
    assert measured(results, reference, relative_rms=0.029).passed
    assert "is 0.5 at t = 10 s" in measured(results, reference, largest=0.049).problem
    assert measured(results, reference, largest=0.051).passed


def test_jumps_are_compared_by_their_times() -> None:
    def step(at: float) -> Results:
        return table(time=[0.0, at, at, 10.0], x=[0.0, 0.0, 1.0, 1.0])

    (found,) = measured(step(5.25), step(5.0)).measures
    assert found.jumps is not None
    assert (found.jumps.known, found.jumps.largest, found.jumps.time) == (1, 0.25, 5.0)
    assert "0.25 s away" in measured(step(5.25), step(5.0), jump_time=0.2).problem
    # x has no jump here, only a steep slope
    smooth = table(time=[0.0, 5.0, 5.1, 10.0], x=[0.0, 0.0, 1.0, 1.0])
    assert "1 are missing" in measured(smooth, step(5.0), jump_time=0.2).problem


def test_a_sampled_reference_shows_jumps_of_boolean_columns_only() -> None:
    samples = np.linspace(0.0, 10.0, 11)
    reference = table(time=samples, b=samples >= 5.0, x=1.0 * (samples >= 5.0))
    by_name = {
        m.deviation.name: m
        for m in measured(table(b=TIME >= 4.5, x=1.0 * (TIME >= 4.5)), reference).measures
    }
    assert by_name["x"].jumps is None
    jump = by_name["b"].jumps
    # the reference switches between 4 s and 5 s, the results between 4.49 s and 4.5 s
    assert jump is not None
    assert (jump.known, jump.missed, jump.added, jump.largest) == (1, 0, 0, 0.0)


def test_jumps_without_a_partner_are_counted() -> None:
    known = np.array([[1.0, 1.0], [5.0, 5.0], [9.0, 9.0]])
    found = np.array([[1.1, 1.1], [4.0, 4.0], [4.9, 4.9]])
    times = jump_times(found, known)
    assert (times.missed, times.added) == (1, 1)
    assert times.largest == pytest.approx(0.1)
    assert jump_times(found[:0], known).missed == 3


def test_jumps_in_intervals_are_apart_by_the_gap_between_them() -> None:
    known = np.array([[1.0, 1.2], [5.0, 5.2]])
    overlapping = np.array([[1.1, 1.4], [4.9, 5.1]])
    assert jump_times(overlapping, known).largest == 0.0
    moved = known + np.array([[0.5], [-0.75]])
    assert jump_times(moved, known).largest == pytest.approx(0.55)


def test_several_rows_at_one_time_are_one_jump() -> None:
    time = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    assert jumps(time, np.array([0.0, 0.0, 1.0, 2.0, 2.0]), held=False).tolist() == [[1.0, 1.0]]


def test_results_that_end_early_do_not_pass() -> None:
    early = table(time=TIME[:500], x=TIME[:500])
    assert measured(early, table(x=TIME)).problem == (
        "The results end at t = 4.99 s, before the stop time 10 s."
    )


def test_a_reference_that_covers_a_part_is_compared_there_and_noted() -> None:
    found = measured(table(x=TIME), table(time=[2.0, 4.0], x=[2.0, 4.0]))
    assert found.passed
    assert found.notes == (
        "The reference covers t = 2 s to 4 s, the run 0 s to 10 s. Only the common part is compared.",
    )


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (table(sped=TIME), "no column of the reference, which has sped.*Did you mean 'speed'"),
        (table(time=[20.0, 30.0], speed=[0.0, 0.0]), "No row of the results is in the time range"),
        (table(time=[], speed=[]), "which has no rows"),
        (table(), "no column with numbers"),
    ],
)
def test_a_reference_with_other_columns_or_times_is_refused(
    reference: Results, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        measured(table(speed=TIME), reference)


def test_a_limit_of_0_accepts_what_is_exact_only() -> None:
    assert measured(table(x=TIME), table(x=TIME), outside=0.0, largest=0.0).passed
    assert "is 0.5" in measured(table(x=1.05 * TIME), table(x=TIME), largest=0.0).problem


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(OptionError, match="'relative_rms' of a conformance run is -1"):
        ConformanceLimits(relative_rms=-1.0)


def test_few_points_look_like_all() -> None:
    wave = np.sin(3.0 * TIME)
    places = thinned(TIME, wave)
    assert len(places) < 150
    # of a height of 2: half a per cent, which is a pixel of a plot
    assert np.abs(np.interp(TIME, TIME[places], wave[places]) - wave).max() < 0.01
    assert thinned(TIME, np.floor(TIME), held=True).tolist() == [*range(0, 1001, 100)]
    jump = np.array([0.0, 1.0, 1.0, 2.0])
    assert thinned(jump, np.array([0.0, 0.0, 1.0, 1.0])).tolist() == [0, 1, 2, 3]


def test_the_number_of_points_is_bounded_and_extremes_are_kept() -> None:
    noise = np.random.default_rng(1).normal(size=100_000)
    places = thinned(np.linspace(0.0, 1.0, 100_000), noise)
    assert len(places) <= 482
    assert {int(noise.argmax()), int(noise.argmin())} <= set(places.tolist())


def example() -> Verdict:
    results, reference = table(x=np.where(TIME < 1.0, inf, TIME)), table(x=TIME)
    found = measured(results, reference)
    return Verdict(
        name="a/b",
        fmu="a/b.fmu",
        model="b",
        outcome=VerdictOutcome.FAILED,
        reason=found.problem,
        measures=found.measures,
        curves=curves(results, reference),
        cause=VerdictCause.DEVIATION,
    )


def test_verdicts_are_read_as_they_were_written() -> None:
    verdict = example()
    assert Verdict.from_json(json.loads(line_of(verdict))) == verdict
    assert Measure.from_json(verdict.measures[0].to_json()).deviation.largest == inf


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("measures", "rms", "wide"),
        ("measures", "outside", [1]),
        ("measures", "jumps", {"known": 1}),
        ("curves", "values", ["a"]),
        ("curves", "time", 5),
    ],
)
def test_a_verdict_with_other_values_is_refused(
    tmp_path: Path, part: str, key: str, value: object
) -> None:
    facts = example().to_json()
    facts[part][0][key] = value
    run = ConformanceRun(folder="", started="", version="1", platform="", settings={})
    (tmp_path / VERDICTS_FILE).write_text(f"{run.head()}\n{json.dumps(facts)}\n", "utf-8")
    with pytest.raises(FileError, match="line 2"):
        ConformanceRun.read(tmp_path)


def test_an_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    run = ConformanceRun(
        folder="fmus", started="2026-11-22", version="1", platform="linux64", settings={}
    )
    line = line_of(example()) + "\n"
    (tmp_path / VERDICTS_FILE).write_text(f"{run.head()}\n{line}{line[:50]}", "utf-8")
    found = ConformanceRun.read(tmp_path)
    assert (found.folder, found.verdicts) == ("fmus", (example(),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1"),
        ("{}\n", "not a file of verdicts"),
        ("time,x\n0,1\n", "line 1"),
        ("[1]\n", "line 1"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        ConformanceRun.read(file)


def test_a_curve_without_numbers_has_none_and_one_that_is_constant_has_its_digits() -> None:
    nothing, constant = curves(table(a=np.full(1001, np.nan), b=np.full(1001, 1.23456789)))
    assert set(nothing.values) == {None}
    assert set(constant.values) == {1.2346}

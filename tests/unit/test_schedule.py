"""Start, stop and step of a run: who says them, and what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu

from fmimaster.base.errors import OptionError
from fmimaster.instants.instant import TimeBase, exact
from fmimaster.steps.ramp import FreeStep, Ramp
from fmimaster.steps.schedule import make_schedule, round_to_125
from fmimaster.steps.step_rule import FixedStep
from fmimaster.system.declarations import Experiment
from fmimaster.system.model import Model

SILENT = Experiment()


def model(*, fixed: bool = False, internal: float | None = None, **experiment: Any) -> Model:
    """A model with this default experiment."""
    fmu = PythonFmu(
        can_handle_variable_communication_step_size=not fixed, fixed_internal_step_size=internal
    )
    return replace(fmu.model, default_experiment=Experiment(**experiment))


# Who says what --------------------------------------------------------------------------------------------------------


def test_the_users_word_comes_first() -> None:
    models = {"a": model(start_time=5, stop_time=6, step_size=0.5)}
    s = make_schedule(
        models, Experiment(1, 2, step_size=0.25), start_time=0, stop_time="3", step_size="1/10"
    )
    assert (s.start, s.stop, s.rule.exact_size) == (Fraction(0), Fraction(3), Fraction(1, 10))
    assert s.notes == ()


def test_the_systems_word_comes_before_the_fmus() -> None:
    models = {"a": model(start_time=5, stop_time=6, step_size=0.5)}
    s = make_schedule(models, Experiment(1, 2, step_size=0.25))
    assert (s.start, s.stop, s.rule.exact_size) == (Fraction(1), Fraction(2), Fraction(1, 4))


def test_what_nobody_else_says_is_taken_from_the_fmus_and_noted() -> None:
    models = {"a": model(start_time=1, stop_time=3, step_size=0.5), "b": model(step_size=0.25)}
    s = make_schedule(models, SILENT)
    assert (s.start, s.stop, s.rule.exact_size) == (Fraction(1), Fraction(3), Fraction(1, 4))
    assert s.notes == (
        "stop time 3 s from the default experiment of 'a'",
        "step size 0.25 s from 'b', the smallest that an FMU suggests",
    )


def test_an_fmu_that_needs_equal_steps_gets_those_that_it_suggests() -> None:
    models = {"a": model(step_size=0.5, fixed=True), "b": model(step_size=0.25)}
    s = make_schedule(models, SILENT, stop_time=2)
    assert s.rule.exact_size == Fraction(1, 2)
    assert not s.is_suggested  # no shorter steps are tried
    (note,) = s.notes
    assert note.startswith("step size 0.5 s from 'a', which may not do other steps")
    assert "another FMU suggests 0.25 s" in note
    assert make_schedule(models, SILENT, stop_time=2, step_size="1/10").notes == ()
    whole = {"a": model(step_size=2.0, fixed=True), "b": model(step_size=0.25)}
    assert make_schedule(whole, SILENT, stop_time=2).rule.exact_size == Fraction(1, 4)


def test_a_fixed_internal_step_size_counts_as_a_suggestion() -> None:
    models = {"a": model(internal=0.125)}
    assert make_schedule(models, SILENT, stop_time=1).rule.exact_size == Fraction(1, 8)


def test_where_fmus_do_not_agree_on_the_start_it_is_zero() -> None:
    models = {"a": model(start_time=1), "b": model(start_time=2)}
    assert make_schedule(models, SILENT, stop_time=9, step_size=1).start == 0


def test_where_fmus_do_not_agree_on_the_stop_it_is_the_earliest_and_noted() -> None:
    models = {"a": model(stop_time=3, step_size=1), "b": model(stop_time=2), "c": model()}
    s = make_schedule(models, SILENT)
    assert s.stop == 2
    assert s.notes[0] == (
        "stop time 2 s from the default experiment of 'b', the smallest that an FMU suggests; the largest is 3 s"
    )


def test_a_fixed_step_is_taken_as_it_is() -> None:
    step = FixedStep("1/3")
    assert make_schedule({"a": model()}, SILENT, stop_time=1, step_size=step).rule is step


def test_without_any_step_size_about_500_steps_of_a_round_size_are_done() -> None:
    s = make_schedule({"a": model()}, SILENT, stop_time=10)
    assert s.rule.exact_size == Fraction(1, 50)
    assert s.notes == ("step size 0.02 s, because none is given: 500 steps",)


@pytest.mark.parametrize("stop", [1e-307, 1e300])
def test_steps_of_a_round_size_fit_into_any_span(stop: float) -> None:
    s = make_schedule({"a": model()}, SILENT, stop_time=stop)
    assert 500 <= exact(stop) / s.rule.exact_size <= 1250


@pytest.mark.parametrize("power", range(-20, 20))
@pytest.mark.parametrize("digit", [1, 2, 5])
def test_a_round_number_is_its_own_round_number(power: int, digit: int) -> None:
    value = digit * Fraction(10) ** power
    assert round_to_125(value) == value


@given(st.fractions(min_value=Fraction(1, 10**15), max_value=10**15).filter(lambda v: v > 0))
def test_the_round_number_is_not_above_and_at_least_two_fifths(value: Fraction) -> None:
    assert Fraction(2, 5) * value < round_to_125(value) <= value


def test_a_number_just_below_a_power_of_ten_rounds_to_half_of_it() -> None:
    # its double is the power of ten itself
    assert round_to_125(1 - Fraction(1, 10**20)) == Fraction(1, 2)


# What does not fit ----------------------------------------------------------------------------------------------------


def test_without_a_stop_time_the_option_is_named() -> None:
    with pytest.raises(OptionError, match=r"neither the system nor an FMU gives one.*--stop-time"):
        make_schedule({"a": model()}, SILENT)


def test_a_stop_time_of_an_fmu_before_the_start_does_not_count() -> None:
    with pytest.raises(OptionError, match=r"nor an FMU gives one after the start time"):
        make_schedule({"a": model(stop_time=1)}, SILENT, start_time=2)


@pytest.mark.parametrize("stop", [0, -1])
def test_the_stop_must_be_after_the_start(stop: int) -> None:
    with pytest.raises(OptionError, match=r"not after the start time 0 s"):
        make_schedule({"a": model()}, SILENT, stop_time=stop)


def test_a_span_that_no_double_holds_is_refused() -> None:
    with pytest.raises(
        OptionError, match=r"From the start time -1e\+308 s to the stop time 1e\+308 s"
    ):
        make_schedule({"a": model()}, SILENT, start_time=-1e308, stop_time=1e308)


@pytest.mark.parametrize("size", ["1e-400", 5e-324, 1e-20])
def test_a_step_that_doubles_cannot_tell_from_none_is_refused(size: Any) -> None:
    with pytest.raises(OptionError, match=r"step size \S+ s is too small: near t = 1 s"):
        make_schedule({"a": model()}, SILENT, stop_time=1, step_size=size)


def test_a_step_larger_than_the_span_is_refused() -> None:
    with pytest.raises(OptionError, match=r"step size 2 s is larger than the whole span of 1 s"):
        make_schedule({"a": model()}, SILENT, stop_time=1, step_size=2)


def test_a_step_must_divide_the_span_if_an_fmu_cannot_take_a_shorter_one() -> None:
    models = {"a": model(), "pump": model(fixed=True)}
    with pytest.raises(OptionError, match=r"'pump' cannot take a shorter last step"):
        make_schedule(models, SILENT, stop_time=1, step_size=0.3)


def test_a_tenth_divides_one_although_no_double_is_a_tenth() -> None:
    s = make_schedule({"a": model(fixed=True)}, SILENT, stop_time=1, step_size=0.1)
    assert s.base.ticks(s.rule.exact_size) * 10 == s.base.ticks(s.stop)


# Rounding ---------------------------------------------------------------------------------------------------------------


def test_a_stop_time_that_is_a_grid_point_but_for_rounding_is_that_point() -> None:
    s = make_schedule({"a": model(fixed=True)}, SILENT, stop_time=3 * 0.1, step_size=0.1)
    assert s.stop == Fraction(3, 10)
    assert s.base.resolution == 10


@given(
    st.floats(-1e6, 1e6),
    st.integers(1, 10**6),
    st.integers(1, 10**6).map(lambda n: n / 10**4),
)
def test_a_stop_time_that_is_computed_with_doubles_is_a_grid_point(
    start: float, n: int, step: float
) -> None:
    s = make_schedule(
        {"a": model()}, SILENT, start_time=start, stop_time=start + n * step, step_size=step
    )
    assert s.stop == exact(start) + n * exact(step)


@pytest.mark.parametrize("stop", [0.3000001, "0.30000001", "3/7"])
def test_a_stop_time_between_grid_points_stays_as_it_is(stop: Any) -> None:
    assert make_schedule({"a": model()}, SILENT, stop_time=stop, step_size=0.1).stop == exact(stop)


def test_points_of_an_input_that_are_on_the_grid_but_for_rounding_are_no_points() -> None:
    s = make_schedule(
        {"a": model()}, SILENT, stop_time=1, step_size=0.1, points=[3 * 0.1, 7 * 0.1, 1 - 0.2, 0.25]
    )
    assert s.points == (Fraction(1, 4),)
    assert [s.on_grid(t) for t in (3 * 0.1, 7 * 0.1, 0.25)] == [0.3, 0.7, 0.25]


def test_the_time_base_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    s = make_schedule({"a": model()}, SILENT, stop_time=1, step_size=0.1, points=[0.25, 0.33])
    monkeypatch.setattr(TimeBase, "of", lambda _: pytest.fail("computed again"))
    assert [s.instant(p).seconds for p in s.points] == [0.25, 0.33]


# Points besides the grid ----------------------------------------------------------------------------------------------


def test_points_on_the_grid_or_outside_of_the_run_are_left_out() -> None:
    s = make_schedule(
        {"a": model()}, SILENT, stop_time=1, step_size=0.1, points=[-1, 0, 0.3, 0.25, 0.25, 1, 2]
    )
    assert s.points == (Fraction(1, 4),)
    assert s.instant(s.points[0]).seconds == 0.25


def test_steps_of_different_sizes_stop_at_points_on_the_grid_too() -> None:
    s = make_schedule({"a": model()}, SILENT, stop_time=1, step_size=Ramp(0.1), points=[0, 0.3, 1])
    assert s.points == (Fraction(3, 10),)


def test_where_an_fmu_cannot_vary_its_step_no_point_is_imposed_and_a_note_says_so() -> None:
    s = make_schedule(
        {"pump": model(fixed=True)}, SILENT, stop_time=1, step_size=0.1, points=[0.25, 0.37]
    )
    assert s.points == ()
    assert "2 jumps of the input" in s.notes[0]
    assert "'pump' cannot vary its step size" in s.notes[0]


@pytest.mark.parametrize("step", [0.1, "1/30", 0.3, 3 * 0.1])
def test_a_multiple_of_the_internal_step_needs_no_note(step: Any) -> None:
    internal = 1 / 30 if step == "1/30" else 0.05
    s = make_schedule({"a": model(internal=internal)}, SILENT, stop_time=3, step_size=step)
    assert s.notes == ()


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (FixedStep(0.1), "the step size 0.1 s is not a multiple of"),
        (FixedStep(0.01), "the step size 0.01 s is not a multiple of"),
        (FreeStep(0.06), "steps of different sizes are not multiples of"),
    ],
)
def test_a_step_that_is_no_multiple_of_the_internal_one_is_noted(rule: Any, text: str) -> None:
    models = {"a": model(), "pump": model(internal=0.03)}
    [note] = make_schedule(models, SILENT, stop_time=3, step_size=rule).notes
    assert note.startswith(text)
    assert "the fixed internal step size 0.03 s of 'pump'" in note


def test_in_its_base_all_times_of_a_schedule_are_integers() -> None:
    s = make_schedule(
        {"a": model()}, SILENT, start_time="1/7", stop_time=2, step_size="1/60", points=[0.33]
    )
    assert s.base.resolution == 2100  # least common multiple of 7, 1, 60 and 100
    assert s.instant(s.start).seconds == 1 / 7

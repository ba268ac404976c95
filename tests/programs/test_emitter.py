"""The pen with which algorithms write: intervals that nest, places and buffers that are handed out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu, plan_of

from fmimaster.inputs.polynomial import ADAPTIVE, FIRST_ORDER, HOLD, LINEAR, Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.program.instructions.steps import Step


@pytest.fixture
def plan() -> Plan:
    """a takes polynomials, b does not and publishes a derivative, c has neither inputs nor outputs."""
    smooth = PythonFmu(
        inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, max_input_derivative_order=1
    )
    other = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.0, "dy": lambda v: 0.0},
        attributes={"dy": {"derivative_of": "y"}},
    )
    units = {"a": smooth, "b": other, "c": PythonFmu()}
    return plan_of(units, ["a.y -> b.u", "b.y -> a.u"])


def ends(emitter: Emitter) -> list[float]:
    return [i.end for i in emitter.program("p").instructions if isinstance(i, Step)]


def test_a_narrowed_interval_is_that_of_the_steps_inside(plan: Plan) -> None:
    p = Emitter(plan)
    with p.over(0.0, 0.5):
        p.step(0)
        with p.over(0.5, 1.0):
            p.step(0)
    p.step(0)
    assert ends(p) == [0.5, 0.5, 1.0]


def test_a_polynomial_is_centred_at_the_begin_of_the_interval(plan: Plan) -> None:
    p = Emitter(plan)
    with p.over(0.25, 1.0):
        p.inputs(0, FIRST_ORDER)
    assert p.program("p").instructions[0] == Fit(0, 0.25, 1, 1, ())


fractions = st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n)))


@given(st.lists(fractions, min_size=1, max_size=4))
def test_the_last_of_nested_parts_ends_where_the_whole_ends(parts: list[tuple[int, int]]) -> None:
    p = Emitter(plan_of({"c": PythonFmu()}))

    def write(rest: list[tuple[int, int]]) -> None:
        if rest:
            k, n = rest[0]
            with p.over(k / n, (k + 1) / n):
                write(rest[1:])
                with p.over(0.5, 1.0):
                    p.step(0)
                p.step(0)

    write(parts)
    found = ends(p)
    assert found[::2] == found[1::2]


def test_the_whole_interval_is_back_after_a_narrowed_one(plan: Plan) -> None:
    p = Emitter(plan)
    for k in range(7):
        with p.over(k / 7, (k + 1) / 7):
            p.step(0)
    assert ends(p) == [(k + 1) / 7 for k in range(7)]
    p.step(0)
    assert ends(p) == [1.0]


def test_places_and_buffers_are_handed_out_once(plan: Plan) -> None:
    p = Emitter(plan, history=2)
    assert p.save([0, 1]) == {0: 0, 1: 1}
    p.step(0)
    assert p.save([0]) == {0: 2}
    # the history is not among the buffers
    first = p.keep()
    p.get(0)
    assert (first, p.keep()) == (0, 1)
    assert (p.n_places, p.n_buffers) == (3, 2)


def test_who_has_not_moved_is_not_saved_again(plan: Plan) -> None:
    p = Emitter(plan)
    places = p.save([0, 1])
    p.step(0)
    p.restore({0: places[0]})
    assert p.save([0, 1]) == places


@pytest.mark.parametrize(("instance", "polynomial"), [(1, FIRST_ORDER), (0, HOLD)])
def test_an_input_is_held_if_the_polynomial_or_the_fmu_says_so(
    plan: Plan, instance: int, polynomial: Polynomial
) -> None:
    p = Emitter(plan)
    p.inputs(instance, polynomial)
    assert p.program("p").instructions == (
        Move(instance, Group.CONTINUOUS),
        Set(instance, Group.CONTINUOUS),
    )


def test_for_what_an_instance_does_not_have_nothing_is_written(plan: Plan) -> None:
    p = Emitter(plan)
    p.inputs(2, FIRST_ORDER)
    p.move(2)
    p.set(2, Group.START)
    p.get(2)
    p.remember()
    p.forget()
    assert not p.program("p")


@pytest.mark.parametrize(
    ("polynomial", "wanted"),
    [(FIRST_ORDER, 0), (Polynomial(3, 0), 4), (Polynomial(2, 1, history=False), 0)],
)
def test_one_point_of_history_more_than_the_polynomial_has_is_wanted(  # one may be too near
    plan: Plan, polynomial: Polynomial, wanted: int
) -> None:
    p = Emitter(plan)
    p.inputs(0, polynomial)
    assert p.wanted_history == wanted


def test_an_fmu_that_cannot_take_a_polynomial_is_given_a_mean_through_two_points_at_most(
    plan: Plan,
) -> None:
    p = Emitter(plan)
    p.inputs(1, Polynomial(3, 0))
    assert p.wanted_history == 3
    assert p.program("p").instructions[0] == Fit(1, 0.0, 2, 0, (), history=True, mean=1.0)


def test_with_derivatives_the_mean_goes_through_the_newest_point_alone(plan: Plan) -> None:
    slope = PythonFmu(inputs={"u": 0.0})
    source = PythonFmu(
        outputs={"y": lambda v: 0.0, "dy": lambda v: 0.0},
        attributes={"dy": {"derivative_of": "y"}},
    )
    p = Emitter(plan_of({"s": source, "t": slope}, ["s.y -> t.u"]))
    with p.over(0.25, 0.5):
        p.inputs(1, ADAPTIVE)
    assert p.program("p").instructions[0] == Fit(1, 0.25, 1, 1, (), mean=0.5)
    assert (p.wanted_history, p.polynomial_inputs) == (0, set())


def plan_of_slope(**capabilities: Any) -> Plan:
    """t holds its input, which has a derivative."""
    source = PythonFmu(
        outputs={"y": lambda v: 0.0, "dy": lambda v: 0.0},
        attributes={"dy": {"derivative_of": "y"}},
    )
    target = PythonFmu(inputs={"u": 0.0}, **capabilities)
    return plan_of({"s": source, "t": target}, ["s.y -> t.u"])


def test_with_derivatives_a_step_may_be_two_halves_of_which_each_is_given_a_value() -> None:
    p = Emitter(plan_of_slope(), in_halves=True)
    p.inputs(1, Polynomial(2, 2))
    fits = [i for i in p.program("p").instructions if isinstance(i, Fit)]
    adaptive = {"history": True, "adaptive": True}
    assert fits == [
        Fit(1, 0.0, 2, 1, (), mean=0.5, half=1, **adaptive),
        Fit(1, 0.5, 2, 1, (), mean=1.0, half=2, **adaptive),
    ]
    assert (p.wanted_history, p.held) == (4, {1})


@pytest.mark.parametrize(
    ("polynomial", "capabilities"),
    [
        (Polynomial(2, 2), {"can_handle_variable_communication_step_size": False}),
        (
            Polynomial(2, 2),
            {"fixed_internal_step_size": 1e-3},
        ),  # half a step may be none of its own
        (Polynomial(2, 2), {"max_input_derivative_order": 1}),
        (LINEAR, {}),  # its error is mainly that of the extrapolation
        (Polynomial(2, 2, mean=True), {}),  # one value, as the user wants it
        (HOLD, {}),
    ],
)
def test_other_steps_are_not_halved(polynomial: Polynomial, capabilities: dict[str, Any]) -> None:
    p = Emitter(plan_of_slope(**capabilities), in_halves=True)
    p.inputs(1, polynomial)
    assert ends(p) == []


def test_each_route_takes_the_derivatives_that_its_source_publishes(plan: Plan) -> None:
    p = Emitter(plan)
    p.inputs(0, Polynomial(2, 2))
    assert p.program("p").instructions[0] == Fit(0, 0.0, 2, 1, (), history=True)


def test_an_adaptive_polynomial_wants_one_more_point_and_is_not_adaptive_through_buffers(
    plan: Plan,
) -> None:
    p = Emitter(plan)
    p.inputs(0, ADAPTIVE)
    assert p.wanted_history == 4
    assert p.program("p").instructions[0] == Fit(0, 0.0, 2, 1, (), history=True, adaptive=True)
    with p.through_begin():
        p.inputs(0, ADAPTIVE)
    (fit,) = (i for i in p.program("p").instructions if isinstance(i, Fit))
    assert (fit.buffers, fit.adaptive) == ((0,), False)


# Outputs at the start of an interval ----------------------------------------------------------------------------------

LINE = Polynomial(2, 0, history=False)


def text(p: Emitter) -> list[str]:
    return [str(i) for i in p.program("p").instructions]


def advance(p: Emitter, *instances: int) -> None:
    for i in instances:
        p.inputs(i, LINE)
        p.step(i)
        p.get(i)


def test_outputs_are_kept_once_however_often_they_are_asked_for(plan: Plan) -> None:
    p = Emitter(plan)
    kept = p.keep()
    assert p.keep_begin() == p.keep() == kept
    p.recall(kept)
    with p.over(0.0, 0.5):
        advance(p, 0)
    assert text(p)[:3] == ["KEEP 0", "RECALL 0", "FIT 0 0.0 2 0 (0,)"]
    assert p.n_buffers == 1


def test_the_start_of_an_interval_is_kept_where_it_starts_if_a_polynomial_needs_it(
    plan: Plan,
) -> None:
    p = Emitter(plan)
    with p.over(0.0, 0.5):
        p.step(1)
        p.get(1)
    with p.over(0.5, 1.0):
        p.step(1)
        p.get(1)
        advance(p, 0)
    written = text(p)
    assert written.index("KEEP 0") == 2
    assert "FIT 0 0.5 2 0 (0,)" in written


def test_a_start_further_out_serves_only_where_the_source_is_ahead(plan: Plan) -> None:
    p = Emitter(plan)
    advance(p, 1)
    with p.over(0.0, 0.5):
        advance(p, 0)
    with p.over(0.5, 1.0):
        advance(p, 0)
    fits = [i for i in p.program("p").instructions if isinstance(i, Fit)]
    # b is at the end of the whole: its line leads from the start of the whole, also over the second half
    assert [f.buffers for f in fits if f.instance == 0] == [(1, 0), (2, 0)]

    for half in (0.0, 0.5):
        with p.over(half, half + 0.5):
            advance(p, 1, 0)
    fits = [i for i in p.program("p").instructions if isinstance(i, Fit)]
    assert [f.buffers for f in fits if f.instance == 0] == [(3,), (4,)]


def test_the_first_program_tells_where_the_start_of_its_interval_is_kept(plan: Plan) -> None:
    p = Emitter(plan)
    advance(p, 0)
    p.program("one")
    assert p.begin_buffer == 0
    p.step(0)
    p.program("other")
    assert p.begin_buffer is None


def test_a_repetition_does_not_rely_on_states_saved_before_it(plan: Plan) -> None:
    p = Emitter(plan)
    p.save([0])
    with p.repeat(least=1, most=2, tolerance=0.0):
        assert p.save([0]) == {0: 1}  # in the second pass it has moved

"""The pen with which algorithms write: intervals that nest, places and buffers that are handed out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu, plan_of

from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions import Fit, Move, Set, Step
from fmimaster.program.polynomial import FIRST_ORDER, HOLD, Polynomial


@pytest.fixture
def plan() -> Plan:
    """a takes polynomials, b does not, c has neither inputs nor outputs."""
    smooth = PythonFmu(
        inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, max_input_derivative_order=1
    )
    other = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0})
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
    assert (p.keep(), p.keep()) == (0, 1)
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


def test_an_fmu_that_cannot_take_a_polynomial_wants_no_history(plan: Plan) -> None:
    p = Emitter(plan)
    p.inputs(1, Polynomial(3, 0))
    assert p.wanted_history == 0

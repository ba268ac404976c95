"""Outputs that depend directly on inputs are those of the new inputs at the end of each step, where FMI allows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest import approx
from python_fmu import PythonFmu
from quarter_car_units import DAMPING, SPLIT_A, SUSPENSION, split_a

from fmimaster.algorithms import (
    Algorithm,
    AutomaticSequence,
    GaussSeidel,
    Jacobi,
    Refreshed,
    Richardson,
    Sequential,
    SubSteps,
)
from fmimaster.base.errors import AccuracyWarning, OptionError
from fmimaster.fmu.instance import UpdateAnswer
from fmimaster.inputs.polynomial import HOLD, Polynomial
from fmimaster.plan.step_groups import Loops
from fmimaster.results.results import Results
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DependencyKind
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

EVENT_MODE: dict[str, Any] = {"has_event_mode": True}
LINEAR_BY_DECLARATION: dict[str, Any] = {"dependency_kinds": {"z": {"u": DependencyKind.CONSTANT}}}
LINE = Polynomial(2, 0)


def clock() -> PythonFmu:
    """y = t**2."""
    return PythonFmu(outputs={"y": lambda v: v.t**2})


def direct(factor: float = 3.0, **options: Any) -> PythonFmu:
    """z depends directly on u."""
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"z": lambda v: factor * v.course("u", v.t)},
        depends={"z": ["u"]},
        **options,
    )


def chain(**options: Any) -> dict[str, PythonFmu]:
    """A clock feeds one unit, that another one, and that an end; listed against the order of their dependencies."""
    return {
        "end": PythonFmu(inputs={"u": 0.0}),
        "second": direct(2.0, **options),
        "first": direct(3.0, **options),
        "clock": clock(),
    }


CHAIN = ["clock.y -> first.u", "first.z -> second.u", "second.z -> end.u"]


def run(simulate: Simulate, units: dict[str, PythonFmu], algorithm: Algorithm) -> Results:
    return simulate(units, CHAIN, algorithm=algorithm, stop_time=1, step_size=0.25)


@pytest.mark.parametrize(
    "options",
    [
        EVENT_MODE,
        LINEAR_BY_DECLARATION,
    ],
    ids=["Event Mode", "linear by declaration"],
)
@pytest.mark.parametrize("base", [Jacobi(), Jacobi(LINE), GaussSeidel(LINE)], ids=str)
def test_outputs_are_refreshed_in_the_order_of_their_dependencies(
    simulate: Simulate, options: dict[str, Any], base: Algorithm
) -> None:
    results = run(simulate, chain(**options, provides_intermediate_update=True), Refreshed(base))
    assert results["first.z"] == approx([3 * (k / 4) ** 2 for k in range(5)], abs=1e-14)
    assert results["second.z"] == approx([6 * (k / 4) ** 2 for k in range(5)], abs=1e-14)


def test_event_mode_and_derivatives_serve_each_other(simulate: Simulate) -> None:
    units = chain(**EVENT_MODE) | {
        "first": direct(3.0, partials={"z": {"u": 3.0}}, **LINEAR_BY_DECLARATION)
    }
    results = run(simulate, units, Refreshed(Jacobi()))
    assert results["second.z"] == approx([6 * (k / 4) ** 2 for k in range(5)], abs=1e-14)
    assert not units["second"].instances[0].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)


def test_without_either_outputs_stay_and_a_warning_names_the_fmus(simulate: Simulate) -> None:
    units = chain()
    with pytest.warns(AccuracyWarning, match="'first', 'second' depend directly on inputs"):
        results = run(simulate, units, Refreshed(Jacobi()))
    assert results["first.z"].tolist() == run(simulate, chain(), Jacobi())["first.z"].tolist()


@pytest.mark.parametrize("linearized", [False, True])
def test_what_may_not_be_linear_is_linearized_only_if_the_user_wants_it(
    simulate: Simulate, linearized: bool
) -> None:
    """A root has an infinite derivative at 0, where a correction would be far off."""
    units = chain(**EVENT_MODE) | {"first": direct(3.0, partials={"z": {"u": 3.0}})}
    algorithm = Refreshed(Jacobi(), linearized)
    if linearized:
        results = run(simulate, units, algorithm)
        assert results["second.z"] == approx([6 * (k / 4) ** 2 for k in range(5)], abs=1e-14)
        return
    with pytest.warns(AccuracyWarning, match="of 'first' .*linearized=True"):
        run(simulate, units, algorithm)
    assert not units["first"].instances[0].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_an_fmu_with_events_of_its_own_does_not_enter_event_mode_for_it(
    simulate: Simulate,
) -> None:
    """UpdateDiscreteStates would execute its event."""
    contact = EventDeclaration("contact", Scope.PRIVATE, (Indicator("z"),))
    first = direct(
        3.0, events=[contact], partials={"z": {"u": 3.0}}, **LINEAR_BY_DECLARATION, **EVENT_MODE
    )
    results = run(simulate, chain(**EVENT_MODE) | {"first": first}, Refreshed(Jacobi()))
    assert not first.instances[0].called(FmiCall.ENTER_EVENT_MODE)
    assert results["second.z"] == approx([6 * (k / 4) ** 2 for k in range(5)], abs=1e-14)


def test_event_mode_is_left_when_no_update_asks_for_another_one(simulate: Simulate) -> None:
    left = [0]

    def update(v: Any) -> UpdateAnswer:
        left[0] = 1 - left[0]
        return UpdateAnswer(wants_update=bool(left[0]))

    units = chain(update=update, **EVENT_MODE) | {
        "first": direct(partials={"z": {"u": 3.0}}, **LINEAR_BY_DECLARATION)
    }
    run(simulate, units, Refreshed(Jacobi()))
    instance = units["second"].instances[0]
    entered, updates = (
        len(instance.called(call))
        for call in (FmiCall.ENTER_EVENT_MODE, FmiCall.UPDATE_DISCRETE_STATES)
    )
    assert entered == 4
    assert updates == 2 * (entered + 1)  # and once after Initialization Mode


def test_inputs_are_set_and_outputs_read_once_for_each_update(simulate: Simulate) -> None:
    units = chain(partials={"z": {"u": 3.0}}, **LINEAR_BY_DECLARATION)
    units["second"] = direct(2.0, **EVENT_MODE)
    run(simulate, units, Refreshed(Jacobi()))
    calls = [logged.call for logged in units["second"].instances[0].log]
    assert calls[calls.index(FmiCall.ENTER_EVENT_MODE) :][:5] == [
        FmiCall.ENTER_EVENT_MODE,
        FmiCall.SET_INPUT,
        FmiCall.UPDATE_DISCRETE_STATES,
        FmiCall.GET,
        FmiCall.ENTER_STEP_MODE,
    ]


def test_only_fmus_with_direct_dependencies_are_asked(simulate: Simulate) -> None:
    units = chain(**EVENT_MODE) | {"clock": PythonFmu(outputs={"y": lambda v: v.t}, **EVENT_MODE)}
    run(simulate, units, Refreshed(Jacobi()))
    assert not units["clock"].instances[0].called(FmiCall.ENTER_EVENT_MODE)


def test_event_mode_that_the_user_refuses_is_not_used(simulate: Simulate) -> None:
    units = chain(partials={"z": {"u": 1.0}}, **LINEAR_BY_DECLARATION, **EVENT_MODE)
    simulate(
        units,
        CHAIN,
        algorithm=Refreshed(Jacobi()),
        stop_time=1,
        step_size=0.25,
        event_mode=False,
    )
    assert not units["first"].instances[0].called(FmiCall.ENTER_EVENT_MODE)
    assert units["first"].instances[0].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)


def test_an_algebraic_loop_of_refreshed_outputs_is_solved(simulate: Simulate) -> None:
    """a = 1 + t - b / 2 and b = a, in Step Mode late by a step."""
    a = PythonFmu(
        inputs={"u": 0.0},
        outputs={"z": lambda v: 1 + v.t - v.u / 2},
        depends={"z": ["u"]},
        **EVENT_MODE,
    )
    results = simulate(
        {"a": a, "b": direct(1.0, **EVENT_MODE)},
        ["a.z -> b.u", "b.z -> a.u"],
        algorithm=Refreshed(Jacobi()),
        stop_time=1,
        step_size=0.25,
        loops=Loops.NONE,
    )
    assert results["a.z"] == approx([(1 + k / 4) / 1.5 for k in range(5)], rel=1e-9)


@pytest.mark.parametrize("inputs", [HOLD, LINE], ids=["hold", "linear"])
def test_residual_power_is_that_of_the_step_and_transmitted_power_that_of_new_outputs(
    simulate: Simulate, inputs: Polynomial
) -> None:
    """energy.md 5: connections use the new values, dP the old ones, P12 the new ones."""
    results = simulate(
        split_a(provides_intermediate_update=True, **EVENT_MODE),
        SPLIT_A,
        algorithm=Refreshed(Jacobi(inputs)),
        stop_time=0.03,
        step_size=0.01,
        power_bonds=[SUSPENSION],
    )
    force, velocity = results["wheel.force"], results["chassis.velocity"]
    assert results["suspension.power"] == approx(force * velocity, rel=1e-12)
    assert results["suspension.transmitted_energy"][-1] == approx(sum(force * velocity) * 0.01)
    # what both had at the end of the last step: the force before it was refreshed, and their inputs
    ahead = 0 if inputs is HOLD else 1
    taken_force, taken_velocity = (y[2] + ahead * (y[2] - y[1]) for y in (force, velocity))
    old_force = force[3] - DAMPING * (velocity[3] - taken_velocity)
    residual = taken_velocity * old_force - taken_force * velocity[3]
    assert results["suspension.residual_power"][3] == approx(residual, rel=1e-9)


@pytest.mark.parametrize("wrapper", [Refreshed, Richardson, SubSteps])
@pytest.mark.parametrize("base", [Sequential(), AutomaticSequence()], ids=["seq", "auto"])
def test_nothing_stands_around_an_algorithm_that_finds_events_for_others(
    wrapper: Callable[[Algorithm], Algorithm], base: Algorithm
) -> None:
    with pytest.raises(OptionError, match="cannot be its base, because"):
        wrapper(base)

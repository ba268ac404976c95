"""A guard refuses the calls that FMI does not allow, at run time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from command_line import reference
from guard import Guarded
from python_fmu import PythonFmu, PythonInstance

from fmimaster import Simulation
from fmimaster.base.errors import CallError
from fmimaster.events import EarlyReturn
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.journaled import Journaled
from fmimaster.fmu.load import Loader
from fmimaster.run.executor import Backend
from fmimaster.system.clocks import Intervals
from fmimaster.system.description import Component
from fmimaster.system.model import Causality, DataType, Source, Variability
from fmimaster.system.states import FmiCall, State, calls_in

CLOCK = {"type": DataType.CLOCK, "variability": Variability.DISCRETE}


def unit() -> PythonFmu:
    return PythonFmu(
        inputs={"u": 0.0, "tick": False},
        parameters={"n": 1, "gain": 1.0},
        outputs={"y": lambda v: v.u, "done": lambda v: False},
        attributes={
            "tick": CLOCK,
            "done": CLOCK,
            "gain": {"variability": Variability.TUNABLE},
            "n": {"type": DataType.INT32, "causality": Causality.STRUCTURAL_PARAMETER},
        },
        has_event_mode=True,
        partials={"y": {"u": 1.0}},
    )


def actions(guarded: Guarded) -> dict[FmiCall, Callable[[], object]]:
    """Each call, made on a guarded instance of the unit."""

    def access(make: Callable[..., Callable[[], None]], name: str) -> Callable[[], None]:
        variable = guarded.model.variable(name)
        assert variable is not None
        values = np.zeros(1, variable.type.dtype)
        return make(variable.type, [variable.value_reference], values)

    tick = guarded.model.variable("tick").value_reference  # type: ignore[union-attr]
    return {
        FmiCall.ENTER_CONFIGURATION_MODE: guarded.enter_configuration_mode,
        FmiCall.EXIT_CONFIGURATION_MODE: guarded.exit_configuration_mode,
        FmiCall.ENTER_INITIALIZATION_MODE: lambda: guarded.enter_initialization_mode(
            0.0, None, None
        ),
        FmiCall.EXIT_INITIALIZATION_MODE: guarded.enter_step_mode,
        FmiCall.EXIT_TO_EVENT_MODE: guarded.enter_event_mode,
        FmiCall.ENTER_EVENT_MODE: guarded.enter_event_mode,
        FmiCall.ENTER_STEP_MODE: guarded.enter_step_mode,
        FmiCall.SET_STRUCTURAL: access(guarded.setter, "n"),
        FmiCall.SET_START: access(guarded.setter, "gain"),
        FmiCall.SET_INPUT: access(guarded.setter, "u"),
        FmiCall.SET_TRIGGER: access(guarded.setter, "tick"),
        FmiCall.SET_TUNABLE: access(guarded.setter, "gain"),
        FmiCall.GET: access(guarded.getter, "y"),
        FmiCall.GET_CLOCK: access(guarded.getter, "done"),
        FmiCall.GET_INTERVAL: guarded.intervals([tick], Intervals.of(1)),
        FmiCall.SET_INTERVAL: lambda: guarded.set_interval(tick, Fraction(1)),
        FmiCall.GET_SHIFT: lambda: guarded.shift(tick),
        FmiCall.SET_SHIFT: lambda: guarded.set_shift(tick, Fraction(1)),
        FmiCall.GET_DIRECTIONAL_DERIVATIVE: guarded.directional_derivative(
            [guarded.model.variable(n).value_reference for n in ("y",)],  # type: ignore[union-attr]
            [guarded.model.variable(n).value_reference for n in ("u",)],  # type: ignore[union-attr]
            np.zeros(1),
            np.zeros(1),
        ),
        FmiCall.UPDATE_DISCRETE_STATES: guarded.update_discrete_states,
        FmiCall.DO_STEP: lambda: guarded.do_step(0.0, 0.0),
        FmiCall.GET_FMU_STATE: lambda: guarded.save(0),
        FmiCall.SET_FMU_STATE: lambda: guarded.restore(0),
        FmiCall.TERMINATE: guarded.terminate,
    }


WAYS = {
    State.INSTANTIATED: (),
    State.CONFIGURATION_MODE: (FmiCall.ENTER_CONFIGURATION_MODE,),
    State.INITIALIZATION_MODE: (FmiCall.ENTER_INITIALIZATION_MODE,),
    State.EVENT_MODE: (FmiCall.ENTER_INITIALIZATION_MODE, FmiCall.EXIT_TO_EVENT_MODE),
    State.STEP_MODE: (
        FmiCall.ENTER_INITIALIZATION_MODE,
        FmiCall.EXIT_TO_EVENT_MODE,
        FmiCall.ENTER_STEP_MODE,
    ),
    State.TERMINATED: (
        FmiCall.ENTER_INITIALIZATION_MODE,
        FmiCall.EXIT_TO_EVENT_MODE,
        FmiCall.ENTER_STEP_MODE,
        FmiCall.TERMINATE,
    ),
}
"""State → the calls that lead there."""

SAME = {
    FmiCall.EXIT_INITIALIZATION_MODE: {FmiCall.ENTER_STEP_MODE},
    FmiCall.ENTER_STEP_MODE: {FmiCall.EXIT_INITIALIZATION_MODE},
    FmiCall.EXIT_TO_EVENT_MODE: {FmiCall.ENTER_EVENT_MODE},
    FmiCall.ENTER_EVENT_MODE: {FmiCall.EXIT_TO_EVENT_MODE},
    FmiCall.SET_INPUT: {FmiCall.SET_START},
    FmiCall.SET_START: {FmiCall.SET_TUNABLE},
    FmiCall.SET_TUNABLE: {FmiCall.SET_START},
}
"""Calls that one method makes, by the state that the instance is in."""


@pytest.mark.parametrize("call", FmiCall)
@pytest.mark.parametrize("state", State)
def test_a_call_is_made_where_the_table_allows_it_and_refused_elsewhere(
    state: State, call: FmiCall
) -> None:
    inner = PythonInstance(unit(), "pump")
    guarded = Guarded(inner)
    make = actions(guarded)
    for step in WAYS[state]:
        make[step]()
    assert guarded.state is state
    guarded.save(0)
    made = len(inner.log)
    allowed = {call} | SAME.get(call, set())
    if allowed & set(calls_in(state)):
        make[call]()
        assert len(inner.log) == made + 1
    else:
        with pytest.raises(
            CallError, match=rf"for 'pump' in {state.value}, but it is allowed only in"
        ) as e:
            make[call]()
        assert e.value.status == "not allowed"
        assert len(inner.log) == made
        assert guarded.state is state


def test_a_restored_instance_is_in_the_state_in_which_it_was_saved() -> None:
    guarded = Guarded(PythonInstance(unit(), "pump"))
    guarded.enter_initialization_mode(0.0, None, None)
    guarded.save(3)
    guarded.enter_step_mode()
    guarded.restore(3)
    assert guarded.state is State.INITIALIZATION_MODE


def setter(guarded: Guarded, name: str) -> Callable[[], None]:
    variable = guarded.model.variable(name)
    assert variable is not None
    return guarded.setter(variable.type, [variable.value_reference], np.zeros(1))


def test_a_clocked_variable_cannot_be_set_in_step_mode() -> None:
    clocked = PythonFmu(
        inputs={"tick": False, "w": 0.0},
        attributes={"tick": CLOCK, "w": {"clocks": ("tick",)}},
        has_event_mode=True,
    )
    guarded = Guarded(PythonInstance(clocked, "pump"))
    write = setter(guarded, "w")
    guarded.enter_initialization_mode(0.0, None, None)
    guarded.enter_event_mode()
    write()
    guarded.enter_step_mode()
    with pytest.raises(CallError, match="only in Event Mode"):
        write()


def test_an_input_without_initial_cannot_be_set_before_initialization_mode() -> None:
    fmi2 = PythonFmu(inputs={"u": 0.0}, attributes={"u": {"initial": None}})
    guarded = Guarded(PythonInstance(fmi2, "pump"))
    write = setter(guarded, "u")
    with pytest.raises(CallError, match="in Instantiated, but it is allowed only in"):
        write()
    guarded.enter_initialization_mode(0.0, None, None)
    write()


def test_without_event_mode_a_tunable_parameter_can_be_set_between_steps() -> None:
    guarded = Guarded(PythonInstance(unit(), "pump"))
    guarded.enter_initialization_mode(0.0, None, None)
    guarded.enter_step_mode()
    actions(guarded)[FmiCall.SET_TUNABLE]()


@pytest.mark.in_this_process("the guard is around instances in the process of the run")
@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST])
def test_a_run_with_events_makes_no_call_that_is_not_allowed(
    monkeypatch: pytest.MonkeyPatch, backend: Backend
) -> None:
    """FMUs of FMI 2.0 and 3.0 from compiled code; the results are the same bits without the guard."""
    more: Any = {"backend": backend, "event_clock": EarlyReturn()}
    system = reference("systems/two-mass-b3-mixed.ssp")
    alone = Simulation(system, step_size=0.01, stop_time=4.0, **more).run()
    instantiate = Loader.instantiate
    made = []

    def guarded(
        loader: Loader, component: Component, name: str, options: InstanceOptions
    ) -> Instance:
        made.append(Guarded(instantiate(loader, component, name, options)))
        return made[-1]

    monkeypatch.setattr(Loader, "instantiate", guarded)
    watched = Simulation(system, step_size=0.01, stop_time=4.0, **more).run()
    assert watched.events
    assert [g.state for g in made] == [State.TERMINATED] * 2
    assert all(np.array_equal(watched[name], alone[name], equal_nan=True) for name in alone.columns)


def test_a_guarded_instance_that_is_reset_is_instantiated() -> None:
    loader = Loader()
    component = Component("d", Source(reference("fmi3/Dahlquist.fmu")))
    guarded = Guarded(Journaled(loader.instantiate(component, "d", InstanceOptions())))
    guarded.enter_initialization_mode(0.0, None, None)
    guarded.enter_step_mode()
    guarded.do_step(0.0, 0.5)
    state = guarded.serialized()
    guarded.reset()
    assert guarded.state is State.INSTANTIATED
    with pytest.raises(CallError, match="allowed only in Step Mode"):
        guarded.do_step(0.0, 0.5)
    guarded.enter_initialization_mode(0.0, None, None)
    guarded.enter_step_mode()
    guarded.do_step(0.0, 0.5)
    assert guarded.serialized() == state
    loader.close()

"""What a user reads when FMUs contradict themselves, or each other, at events."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from command_line import reference
from event_fmus import EXTRA
from python_fmu import PythonFmu

from fmimaster import Simulation, SystemBuilder
from fmimaster.algorithms import Algorithm, AutomaticSequence, GaussSeidel, Jacobi, Sequential
from fmimaster.base.errors import (
    AccuracyWarning,
    CallError,
    DescriptionError,
    FmimasterError,
    OptionError,
    ProgramError,
    SimulationError,
)
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.fmu import add_manifest
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.inputs import LINEAR, Polynomial
from fmimaster.results.results import Results
from fmimaster.steps.locate import Locate
from fmimaster.studies.demos.two_mass import TwoMassReference
from fmimaster.system.declarations import EventDeclaration, EventPolicy, Indicator, Payload, Scope
from fmimaster.system.model import DataType, Variability

Simulate = Callable[..., Results]


def fall(
    *,
    z: Callable[[Any], float] = lambda v: v.x,
    slope: float = -1.0,
    trigger: str | None = "hit",
    reset: Callable[[Any], UpdateAnswer | None] | None = None,
    step: Callable[[Any, float], StepAnswer | None] | None = None,
    scope: Scope = Scope.SHARED,
    **capabilities: Any,
) -> PythonFmu:
    """x falls by 1 per second from 0.5; the event is where it is 0, and lets it begin anew."""

    def by_default(v: Any, h: float) -> StepAnswer | None:
        if 1e-12 < v.x < h - 1e-12:
            end = v.t + v.x
            v.x = 0.0
            return StepAnswer(end, early=True, event=True)
        v.x -= h
        return None

    def update(v: Any) -> None:
        if v.hit:
            v.x = 0.5

    payload = (Payload("y", "w"),) if scope is Scope.SHARED else ()
    event = EventDeclaration(
        *("hit", scope, (Indicator("z", "dz"),), None, trigger, payload),
        right_limits_without_step=True,
    )
    return PythonFmu(
        inputs={"hit": False, "w": 0.0},
        states={"x": 0.5},
        outputs={"y": lambda v: v.x, "z": z, "dz": lambda v: slope},
        attributes={
            "hit": {"type": DataType.CLOCK},
            "w": {"variability": Variability.DISCRETE, "clocks": ("hit",)},
            "dz": {"derivative_of": "z"},
        },
        step=step or by_default,
        update=reset or update,
        events=[event],
        **{"has_event_mode": True, "might_return_early_from_do_step": True} | capabilities,
    )


def run(
    simulate: Simulate,
    clock: EventClock | None,
    *,
    alone: bool = False,
    output_variables: Sequence[str] = (),
    **units: PythonFmu,
) -> Results:
    return simulate(
        units,
        shared_events=None if alone else {"crash": [f"{name}.hit" for name in units]},
        event_clock=clock,
        step_size=0.2,
        stop_time=1.4,
        output_variables=output_variables,
    )


CLOCKS = [Predictive(), EarlyReturn()]


@pytest.mark.parametrize("clock", CLOCKS, ids=["predictive", "early return"])
def test_two_that_agree_are_simulated(simulate: Simulate, clock: EventClock) -> None:
    results = run(simulate, clock, a=fall(), b=fall())
    assert [e.name for e in results.events] == ["crash", "crash"]
    assert [e.time for e in results.events] == pytest.approx([0.5, 1.0])
    assert results["a.y"][-1] == pytest.approx(0.1)


@pytest.mark.parametrize("clock", CLOCKS, ids=["predictive", "early return"])
def test_a_shared_event_without_trigger_is_refused_by_event_clocks(
    simulate: Simulate, clock: EventClock
) -> None:
    with pytest.raises(DescriptionError) as caught:
        run(simulate, clock, a=fall(), b=fall(trigger=None))
    message = str(caught.value)
    assert message.startswith("The shared event 'crash' has no trigger in 'b', so an event clock")
    assert "Name a trigger in the FMU's manifest, or use LookAhead" in message


def test_an_algorithm_and_an_event_clock_that_do_not_go_together_are_refused(
    simulate: Simulate,
) -> None:
    units: Any = {"a": fall(), "b": fall()}
    with pytest.raises(OptionError, match=r"The event clock Check is for .*, not for Jacobi"):
        run(simulate, Check(), **units)
    for algorithm in (Sequential(), AutomaticSequence()):
        with pytest.raises(OptionError, match=r"needs the event clock Check, .* event_clock=Check"):
            simulate(units, algorithm=algorithm, stop_time=1, step_size=0.1)


def test_a_shared_event_without_trigger_is_for_look_ahead(simulate: Simulate) -> None:
    passing: Any = {"step": lambda v, h: setattr(v, "x", v.x - h), "trigger": None}
    assert run(simulate, LookAhead(), a=fall(**passing), b=fall(**passing)).rows > 1


def test_a_shared_event_of_which_nobody_says_with_whom_is_refused(simulate: Simulate) -> None:
    with pytest.raises(
        DescriptionError, match=r"'a\.hit' is shared, but .* not declare its members"
    ):
        run(simulate, Predictive(), alone=True, a=fall())


@pytest.mark.parametrize("clock", [*CLOCKS, LookAhead()], ids=["predictive", "early", "look-ahead"])
def test_members_that_disagree_at_the_start_are_told_with_both_values(
    simulate: Simulate, clock: EventClock
) -> None:
    with pytest.raises(SimulationError) as caught:
        run(simulate, clock, a=fall(), b=fall(z=lambda v: v.x - 0.01))
    message = str(caught.value)
    assert "members of the shared event 'crash' disagree at t = 0 s" in message
    assert "'a.z' is 0.5 but 'b.z' is 0.49, though both have the same inputs" in message


def test_members_that_disagree_after_an_event_are_told(simulate: Simulate) -> None:
    def reset(v: Any) -> None:
        if v.hit:
            v.x = 0.25

    with pytest.raises(
        SimulationError, match=r"disagree at t = 0\.5 s: 'a\.z' is 0\.5 but 'b\.z' is 0\.25"
    ):
        run(simulate, EarlyReturn(), a=fall(), b=fall(reset=reset))


def test_members_that_differ_by_rounding_agree(simulate: Simulate) -> None:
    assert run(simulate, EarlyReturn(), a=fall(), b=fall(z=lambda v: v.x + 1e-9)).rows > 1


@pytest.mark.parametrize("clock", CLOCKS, ids=["predictive", "early return"])
def test_an_event_that_is_still_on_after_it_has_happened_is_told(
    simulate: Simulate, clock: EventClock
) -> None:
    idle: Any = {"reset": lambda v: None}
    with pytest.raises(SimulationError) as caught:
        run(simulate, clock, a=fall(**idle), b=fall(**idle))
    message = str(caught.value)
    assert message.startswith("The event 'crash' is still on after it has happened at t = 0.5 s")
    assert "(a.z, b.z)" in message
    assert "check the FMU's reset, and that the trigger reaches it" in message


@pytest.mark.parametrize("since", [0.0, 0.3])
@pytest.mark.parametrize("clock", [*CLOCKS, LookAhead()], ids=["predictive", "early", "look-ahead"])
def test_an_indicator_that_is_nan_is_named(
    simulate: Simulate, clock: EventClock, since: float
) -> None:
    """By the clock, if it is not an output that is recorded anyway."""
    broken = fall(z=lambda v: nan if v.t >= since else v.x, scope=Scope.PRIVATE)
    with pytest.raises(SimulationError) as caught:
        run(simulate, clock, alone=True, a=broken, output_variables=["a.y"])
    assert "The event indicator 'a.z' is NaN at t = " in str(caught.value)
    assert "Check the FMU's inputs and parameters" in str(caught.value)


def test_an_output_without_a_number_at_the_start_is_told_where_event_mode_is_used(
    simulate: Simulate,
) -> None:
    unit = PythonFmu(outputs={"y": lambda v: nan}, has_event_mode=True)
    with pytest.raises(SimulationError) as caught:
        simulate({"a": unit}, event_mode=True, step_size=1, stop_time=1)
    assert str(caught.value).startswith("The event at the start, t = 0 s, does not end")
    assert "'a.y' is NaN" in str(caught.value)


@pytest.mark.parametrize("reached", [-0.1, 0.3, inf, nan])
def test_an_early_return_outside_of_the_step_is_told_with_its_time(
    simulate: Simulate, reached: float
) -> None:
    unit = fall(step=lambda v, h: StepAnswer(reached, early=True, event=True), scope=Scope.PRIVATE)
    with pytest.raises(CallError) as caught:
        run(simulate, EarlyReturn(), alone=True, a=unit)
    message = str(caught.value)
    assert message.startswith(
        f"DoStep of 'a' from t = 0 s (size 0.2 s) returned early at t = {reached:.17g} s, which is not inside the step"
    )
    assert "run it without Event Mode" in message
    error = caught.value
    assert (error.instance, error.function, error.status) == ("a", "DoStep", "early return")


def test_an_early_return_before_the_last_one_is_told(simulate: Simulate) -> None:
    """The second time it comes back to where it was, or before."""
    answers = iter([StepAnswer(0.1, early=True, event=True), StepAnswer(0.05, early=True)])
    unit = fall(step=lambda v, h: next(answers), scope=Scope.PRIVATE)
    with pytest.raises(CallError, match=r"from t = 0\.1 s .* returned early at t = 0\.05"):
        run(simulate, EarlyReturn(), alone=True, a=unit)


@pytest.mark.parametrize("event", [True, False])
@pytest.mark.parametrize("creep", [0.0, 1e-13])
def test_early_returns_without_progress_end_with_a_message_that_names_the_fmu(
    simulate: Simulate, event: bool, creep: float
) -> None:
    """With 1e-13 s each, 0.1 s would take as many steps as there are seconds in 30000 years."""
    unit = fall(
        step=lambda v, h: StepAnswer(v.t + creep, early=True, event=event), scope=Scope.PRIVATE
    )
    with pytest.raises(SimulationError) as caught:
        run(simulate, EarlyReturn(), alone=True, a=unit, b=PythonFmu(outputs={"y": lambda v: 0.0}))
    message = str(caught.value)
    assert "'a'" in message
    assert "'b'" not in message
    assert ("illegitimate: events at t" if event else "DoStep of 'a' returns early at t") in message
    assert "limit: 1000" in message


def test_an_early_return_without_length_is_an_event_at_the_start_of_the_step(
    simulate: Simulate,
) -> None:
    """The FMU finds its event at the start of a step: after the update it goes on."""
    times: list[float] = []

    def step(v: Any, h: float) -> StepAnswer | None:
        if v.t >= 0.4 and not times:
            times.append(v.t)
            return StepAnswer(v.t, early=True, event=True)
        return None  # x stays: by its indicator nothing occurs

    a = fall(step=step, slope=0.0, scope=Scope.PRIVATE)
    b = PythonFmu(outputs={"y": lambda v: v.t})
    results = run(simulate, EarlyReturn(), alone=True, b=b, a=a)
    assert [(e.name, e.time) for e in results.events] == [("event of a", times[0])]
    assert results.time[-1] == 1.4


def test_a_discarded_step_of_an_fmu_that_stops_twice_gets_no_advice_on_event_mode(
    simulate: Simulate,
) -> None:
    """Brought back and stepped to 0.1 s, it discards that step at 0.05 s, and so on."""
    unit = PythonFmu(
        parameters={"policy": 0},
        inputs={"go": 0},
        states={"x": 0.5},
        outputs={"z": lambda v: v.x},
        attributes={"policy": {"type": DataType.INT32}, "go": {"type": DataType.INT32}},
        step=lambda v, h: StepAnswer(v.t + h / 2, discarded=True),
        events=[EventDeclaration("hit", Scope.PRIVATE, (Indicator("z"),), None, "go", (), True)],
        event_policy=EventPolicy("policy", execute=0, announce=1),
    )
    with pytest.raises(CallError) as caught:
        run(simulate, EarlyReturn(), alone=True, a=unit)
    message = str(caught.value)
    assert "was discarded at an event at t = 9.5" in message
    assert "stopped earlier again" in message
    assert "Event Mode" not in message
    assert "an event clock with which FMUs do not stop (Predictive, LookAhead)" in message
    assert caught.value.status == "Discard"


def test_a_termination_inside_a_step_is_the_cause_of_its_end(simulate: Simulate) -> None:
    unit = PythonFmu(
        outputs={"y": lambda v: v.t}, step=lambda v, h: StepAnswer(v.t + h / 2, terminate=True)
    )
    results = simulate({"pump": unit}, step_size=0.2, stop_time=1)
    assert [str(s.cause) for s in results.steps] == ["pump ended the run"]
    assert results.steps[-1].end == 0.1


def test_in_sequential_steps_only_the_first_instance_may_return_early(simulate: Simulate) -> None:
    """The second one handles its events at the end of the step: no manifest says how it could ignore them."""

    def step(v: Any, h: float) -> StepAnswer:
        v.n += 1
        return StepAnswer(v.t + h, event=True)

    plain = PythonFmu(
        states={"n": 0.0},
        outputs={"y": lambda v: v.n},
        step=step,
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )
    results = simulate(
        {"a": fall(scope=Scope.PRIVATE), "b": plain},
        algorithm=Sequential("a"),
        event_clock=Check(),
        step_size=0.2,
        stop_time=0.4,
    )
    assert [e.name for e in results.events] == ["event of b", "event of b"]


def test_in_an_automatic_sequence_who_cannot_ignore_its_events_is_refused(
    simulate: Simulate,
) -> None:
    units = {"a": fall(scope=Scope.PRIVATE), "b": fall(scope=Scope.PRIVATE)}
    automatic = {"algorithm": AutomaticSequence(), "event_clock": Check()}
    with pytest.raises(OptionError, match=r"^'b' stops at its events when it steps first.*Use Seq"):
        simulate(units, **automatic, step_size=0.2, stop_time=0.4)


def test_an_early_return_that_was_not_allowed_is_told(simulate: Simulate) -> None:
    unit = fall(step=lambda v, h: StepAnswer(0.1, early=True), scope=Scope.PRIVATE)
    with pytest.raises(
        CallError, match=r"returned early at t = 0\.1\d* s, which was not allowed\. "
    ):
        run(simulate, LookAhead(), alone=True, a=unit)


def discarding(is_in_step: Callable[[float, float], bool]) -> PythonFmu:
    """Discards a step in which this function says that 0.1 s is, but its indicator is above 0 there."""

    def step(v: Any, h: float) -> StepAnswer | None:
        v.x -= h
        return StepAnswer(0.1, discarded=True) if is_in_step(v.t, v.t + h - 1e-9) else None

    return PythonFmu(
        parameters={"policy": 0},
        inputs={"go": 0},
        states={"x": 0.5},
        outputs={"z": lambda v: v.x},
        attributes={"policy": {"type": DataType.INT32}, "go": {"type": DataType.INT32}},
        step=step,
        events=[EventDeclaration("hit", Scope.PRIVATE, (Indicator("z"),), None, "go", (), True)],
        event_policy=EventPolicy("policy", execute=0, announce=1),
    )


def test_an_fmu_that_has_stopped_at_no_event_goes_on_from_there(simulate: Simulate) -> None:
    """With the inputs of now there is none: it had stopped by those of the step."""
    unit = discarding(lambda begin, end: begin < 0.1 < end)
    results = simulate({"a": unit}, event_clock=EarlyReturn(), step_size=0.2, stop_time=0.4)
    assert results.time == pytest.approx([0.0, 0.1, 0.3, 0.4])
    assert results.events == ()


def test_a_discarded_step_without_an_event_there_is_told(simulate: Simulate) -> None:
    unit = discarding(lambda begin, end: begin <= 0.1 < end)
    with pytest.raises(SimulationError) as caught:
        run(simulate, EarlyReturn(), alone=True, a=unit)
    assert "'a' discards its step at t = 0.1 s again and again" in str(caught.value)
    assert "it is not known which event it is" in str(caught.value)


def test_events_that_want_another_update_for_ever_are_told(simulate: Simulate) -> None:
    def restless(v: Any) -> UpdateAnswer:
        return UpdateAnswer(wants_update=v.t > 0)

    unit = fall(reset=restless, scope=Scope.PRIVATE)
    with pytest.raises(
        SimulationError, match=r"illegitimate: events at t = 0\.5 s do not end: 'a'"
    ):
        run(simulate, EarlyReturn(), alone=True, a=unit)


def test_who_cannot_go_back_is_named(simulate: Simulate) -> None:
    stiff = fall(can_get_and_set_fmu_state=False)
    with pytest.raises(ProgramError) as caught:
        run(simulate, EarlyReturn(), a=fall(), b=stiff)
    assert str(caught.value).startswith("'b' may have to go back when an FMU stops at an event")
    assert "Use an event clock that needs no rollback (LookAhead, Predictive)" in str(caught.value)


def test_locating_needs_who_can_go_back_too(simulate: Simulate) -> None:
    with pytest.raises(FmimasterError, match="'a' may have to go back"):
        simulate(
            {
                "a": PythonFmu(
                    outputs={"n": lambda v: 0},
                    attributes={"n": {"type": DataType.INT32}},
                    can_get_and_set_fmu_state=False,
                ),
                "b": PythonFmu(inputs={"m": 0}, attributes={"m": {"type": DataType.INT32}}),
            },
            ["a.n -> b.m"],
            step_size=Locate(0.2),
            stop_time=1.4,
        )


# FMUs of fmi-ls-events 0.2 judge a trigger by themselves ---------------------------------------------------------------


def lying(until: float) -> PythonFmu:
    """A body on a table that is pressed on it up to this time: it does not approach, and a trigger changes nothing."""
    event = EventDeclaration(
        *("hit", Scope.PRIVATE, (Indicator("gap", "speed"), Indicator("speed", "force"))),
        *(None, "hit.in", ()),
    )
    return PythonFmu(
        inputs={"hit.in": False},
        outputs={
            "gap": lambda v: 0.0,
            "speed": lambda v: 0.0,
            "force": lambda v: -1.0 if v.t < until else 0.0,
        },
        attributes={
            "hit.in": {"type": DataType.CLOCK},
            "speed": {"derivative_of": "gap"},
            "force": {"derivative_of": "speed"},
        },
        update=lambda v: None,
        events=[event],
        has_event_mode=True,
    )


def test_a_trigger_without_effect_is_not_repeated_at_its_instant(simulate: Simulate) -> None:
    with pytest.warns(AccuracyWarning, match="its derivative 'force' is -1"):
        results = run(simulate, Predictive(), alone=True, a=lying(0.3))
    assert results.time[-1] == 1.4
    times = [e.time for e in results.events]
    assert 0 < len(times) == len(set(times)) < 20


def test_triggers_without_effect_are_told_in_the_end(simulate: Simulate) -> None:
    with pytest.raises(SimulationError, match=r"The event 'a\.hit' is still on after it") as caught:
        run(simulate, Predictive(), alone=True, a=lying(inf))
    assert len(caught.value.results.time) > 3


# Derivatives that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("wrong", [("ceiling.z[1]", "x"), ("collision.z[1]", "collision.dz[2]")])
def test_a_wrong_derivative_of_an_indicator_is_told(
    wrong: tuple[str, str], version: str, tmp_path: Path
) -> None:
    """The first indicator has the own states only, the second one those of the other mass, by polynomials."""
    indicator, derivative = wrong
    paths = {n: reference(f"{version}/TwoMass{n.title()}.fmu") for n in ("upper", "lower")}
    declared = paths["upper"]
    with zipfile.ZipFile(declared) as archive:
        text = archive.read(EXTRA).decode()
    right = indicator.replace(".z", ".dz")
    text = text.replace(f'derivative="{right}"', f'derivative="{derivative}"')
    paths["upper"] = add_manifest(declared, text.encode(), tmp_path / "upper.fmu")
    system = SystemBuilder()
    for name, path in paths.items():
        system.add(name, path)
    system.connect("upper.x", "lower.u_x")
    system.connect("upper.v", "lower.u_v")
    system.connect("lower.x", "upper.u_x")
    system.connect("lower.v", "upper.u_v")
    system.share_event("collision", "upper.collision", "lower.collision")
    settings: Any = {"algorithm": Jacobi(Polynomial(2, 2)), "event_clock": Predictive()}
    told = rf"'upper': the indicator '{re.escape(indicator)}' of the event '\w+' changes by .* but its derivative"
    with pytest.warns(AccuracyWarning, match=told):
        Simulation(system, step_size=0.02, stop_time=0.5, **settings).run()


@pytest.mark.parametrize(
    "algorithm", [GaussSeidel(LINEAR), Jacobi(LINEAR)], ids=["Gauss-Seidel", "Jacobi"]
)
def test_inputs_on_lines_are_no_reason_for_warnings(algorithm: Algorithm) -> None:
    """A line has the mean rate of the step before, so indicators that depend on it do not change by their derivatives; and
    many steps are undone, but those in their place are short enough."""
    system = reference("systems/two-mass-b1-mixed.ssp")
    results = Simulation(system, algorithm=algorithm, step_size=0.05, stop_time=1).run()
    assert not results.statistics.warnings
    exact = TwoMassReference(1.0).events[0].time
    assert [e.time for e in results.events] == pytest.approx([exact], abs=1e-4)

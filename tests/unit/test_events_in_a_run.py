"""Events of several units in one run: who is stepped, brought back and updated, and which rows there are (hybrid.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.algorithms import GaussSeidel, Jacobi, Sequential, Waveform
from fmimaster.base.errors import AccuracyWarning, ConvergenceError, OptionError, ProgramError
from fmimaster.base.installation import reference_path
from fmimaster.events.event_clock import Check, EarlyReturn
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.steps.locate import Locate
from fmimaster.steps.ramp import FreeStep
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.system.declarations import EventDeclaration, Indicator, Payload, Scope
from fmimaster.system.model import DataType, Variability
from fmimaster.system.states import FmiCall

CLOCK = {"type": DataType.CLOCK}

Simulate = Callable[..., Results]


@pytest.fixture(params=[Backend.REFERENCE, Backend.FASTEST], ids=["reference", "native"])
def simulate(request: pytest.FixtureRequest, simulation: Callable[..., Simulation]) -> Simulate:
    """simulate(units, connections, **settings) by each of the executors."""
    return lambda *system, **options: simulation(
        *system, **{"backend": request.param, "step_size": FixedStep("0.1"), **options}
    ).run()


def steps(unit: PythonFmu) -> list[tuple[float, float]]:
    """Begin and end of each step, rounded to 1e-12 s."""
    return [(round(t, 12), round(t + h, 12)) for t, h in unit.instances[0].called(FmiCall.DO_STEP)]


# Early return with several units: hybrid.md 11 ------------------------------------------------------------------------


def returning(*events: float, **more: Any) -> PythonFmu:
    """Returns early at these times; y counts its events."""

    def step(v: Any, h: float) -> StepAnswer | None:
        for t in events:
            if v.t < t <= v.t + h + 1e-12:
                v.asks = 1.0
                return StepAnswer(t, early=t < v.t + h, event=True)
        return None

    def update(v: Any) -> None:
        v.n, v.asks = v.n + v.asks, 0.0

    return PythonFmu(
        inputs={"u": 0.0},
        states={"n": 0.0, "asks": 0.0},
        outputs={"y": lambda v: v.n},
        step=step,
        update=update,
        has_event_mode=True,
        might_return_early_from_do_step=True,
        **more,
    )


def plain(**more: Any) -> PythonFmu:
    return PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.t}, **more)


def around_the_event(unit: PythonFmu) -> list[tuple[float, float]]:
    return [s for s in steps(unit) if 0.3 <= s[0] < 0.4]


def test_who_may_return_early_steps_first_so_that_nobody_goes_back(simulate: Simulate) -> None:
    units = {"q": plain(), "r": plain(), "p": returning(0.37)}
    results = simulate(units, [], event_clock=EarlyReturn(), stop_time=0.5)
    for unit in units.values():
        assert around_the_event(unit)[-2:] == [(0.3, 0.37), (0.37, 0.4)] or unit is units["p"]
    assert around_the_event(units["q"]) == [(0.3, 0.37), (0.37, 0.4)]
    assert sum(i.restores for i in results.statistics.instances) == 0
    assert [i.events for i in results.statistics.instances] == [0, 0, 2]  # one is the initial one


def test_who_was_stepped_before_is_brought_back(simulate: Simulate) -> None:
    units = {"q": plain(), "p": returning(0.37)}
    results = simulate(
        units, ["q.y -> p.u"], algorithm=GaussSeidel(), event_clock=EarlyReturn(), stop_time=0.5
    )
    assert around_the_event(units["q"]) == [(0.3, 0.4), (0.3, 0.37), (0.37, 0.4)]
    assert [i.restores for i in results.statistics.instances] == [1, 0]


def test_the_grid_is_not_shifted_by_an_event(simulate: Simulate) -> None:
    units = {"q": plain(), "p": returning(0.37, 0.55)}
    results = simulate(units, [], event_clock=EarlyReturn(), stop_time=0.6)
    times = [0, 0.1, 0.2, 0.3, 0.37, 0.37, 0.4, 0.5, 0.55, 0.55, 0.6]
    assert results.time == pytest.approx(times, abs=1e-12)
    assert results["p.y"].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_the_earliest_of_several_events_comes_first(simulate: Simulate) -> None:
    units = {"p": returning(0.37), "q": returning(0.33), "r": plain()}
    results = simulate(units, ["p.y -> r.u"], event_clock=EarlyReturn(), stop_time=0.4)
    inside = [t for t in results.time if 0.3 < t < 0.4]
    assert inside == pytest.approx([0.33, 0.33, 0.37, 0.37])
    assert around_the_event(units["r"]) == [(0.3, 0.33), (0.33, 0.37), (0.37, 0.4)]
    assert (results["p.y"][-1], results["q.y"][-1]) == (1, 1)


def test_who_cannot_go_back_stays_ahead(simulate: Simulate) -> None:
    stiff = {"can_get_and_set_fmu_state": False}
    units = {"q": plain(**stiff), "p": returning(0.37), "r": plain(**stiff)}
    late = r"^'q' has seen the event at t = 0\.37 s late, by 0\.03"
    with pytest.warns(AccuracyWarning, match=late):
        simulate(
            units, ["q.y -> p.u"], algorithm=GaussSeidel(), event_clock=EarlyReturn(), stop_time=1
        )
    assert around_the_event(units["q"]) == [(0.3, 0.4)]
    assert around_the_event(units["r"]) == [(0.3, 0.37), (0.37, 0.4)]


def counting_ball(height: float) -> PythonFmu:
    """As the BouncingBall of the Reference FMUs for FMI 3.0 does: explicit Euler steps of 1 ms, whose times are products;
    the end of a step is a sum, so the two differ by a unit in the last place now and then."""

    def step(v: Any, h: float) -> StepAnswer | None:
        while (v.n + 1) * 1e-3 <= v.t + h + 1e-5:
            before = v.x
            v.n, v.x, v.v = v.n + 1, v.x + 1e-3 * v.v, v.v - 9.81e-3
            if before > 0 >= v.x:
                return StepAnswer(v.n * 1e-3, early=True, event=True)
        return None

    def update(v: Any) -> None:
        if v.x <= 0 and v.v < 0:
            v.x, v.v, v.bounces = 5e-324, -0.7 * v.v, v.bounces + 1

    return PythonFmu(
        states={"n": 0, "x": height, "v": 0.0, "bounces": 0.0},
        outputs={"h": lambda v: v.x, "y": lambda v: v.bounces},
        step=step,
        update=update,
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )


@pytest.mark.parametrize("height", [0.1 + 0.02 * k for k in range(30)])
def test_an_event_at_the_end_of_a_step_but_for_rounding_is_one(
    simulate: Simulate, height: float
) -> None:
    ball = counting_ball(height)
    results = simulate(
        {"ball": ball}, event_clock=EarlyReturn(), step_size=FixedStep("0.001"), stop_time=0.6
    )
    assert results["ball.y"][-1] == len(results.events) > 0
    assert sum(s.count for s in results.steps) == 600


# Superdense time: hybrid.md 6 -----------------------------------------------------------------------------------------


def source() -> PythonFmu:
    """Its clock is active at 1 s, in the first event iteration."""

    def update(v: Any) -> UpdateAnswer:
        v.done = float(v.t >= 1.0)
        return UpdateAnswer(next_event_time=inf if v.done else 1.0)

    return PythonFmu(
        states={"done": 0.0},
        outputs={"out": lambda v: bool(v.t >= 1.0 and not v.done), "y": lambda v: 7.0},
        attributes={"out": CLOCK},
        update=update,
        has_event_mode=True,
    )


def delay() -> PythonFmu:
    """Passes the value of its clock on with its own clock, one event iteration later."""

    def update(v: Any) -> UpdateAnswer:
        v.on = float(v.tick)
        if v.tick:
            v.held = v.w
        return UpdateAnswer(wants_update=bool(v.tick))

    return PythonFmu(
        inputs={"tick": False, "w": 0.0},
        states={"on": 0.0, "held": 0.0},
        outputs={"out": lambda v: bool(v.on), "y": lambda v: v.held},
        attributes={
            "tick": CLOCK,
            "out": CLOCK,
            "w": {"variability": Variability.DISCRETE, "clocks": ("tick",)},
        },
        update=update,
        has_event_mode=True,
    )


@pytest.mark.parametrize("order", [("d0", "d1", "d2", "d3"), ("d3", "d1", "d2", "d0")])
def test_sd2_three_delays_of_an_event_iteration(simulate: Simulate, order: tuple[str, ...]) -> None:
    units = {name: source() if name == "d0" else delay() for name in order}
    links = [
        f"d{k}.{a} -> d{k + 1}.{b}" for k in range(3) for a, b in (("out", "tick"), ("y", "w"))
    ]
    results = simulate(units, links, stop_time=1.5)
    rows = results.time == 1.0
    assert rows.sum() == 4  # before, and one after each delay
    for k in (1, 2, 3):
        assert results[f"d{k}.y"][rows].tolist() == [7.0 if row >= k else 0.0 for row in range(4)]
        assert units[f"d{k}"].instances[0].was_set("w") == [7.0]


@pytest.mark.parametrize("events", [(0.4,), (0.37, 0.4), (0.3, 0.4), (0.4, 0.4 + 2**-40)])
def test_sd12_no_step_has_no_length(simulate: Simulate, events: tuple[float, ...]) -> None:
    """Two units with events at one time, where the grid has a point too, and a third one with a time event there."""
    timed = PythonFmu(
        outputs={"y": lambda v: v.t},
        update=lambda v: UpdateAnswer(next_event_time=0.4 if v.t < 0.4 else inf),
        has_event_mode=True,
    )
    units = {"p": returning(*events), "q": returning(*events), "timed": timed, "r": plain()}
    results = simulate(units, ["p.y -> r.u"], event_clock=EarlyReturn(), stop_time=0.5)
    for unit in units.values():
        assert all(h > 0 for _, h in unit.instances[0].called(FmiCall.DO_STEP))
    assert all(a <= b for a, b in pairwise(results.time))
    assert (results["p.y"][-1], results["q.y"][-1]) == (len(events), len(events))


# Locating by going back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [DataType.INT32, DataType.FLOAT64])
def test_a_change_of_a_discrete_output_is_located(simulate: Simulate, target: DataType) -> None:
    """Also where the input is continuous, as the valve of a tank that a controller opens by a Boolean."""
    integer = {"type": DataType.INT32}
    switch = PythonFmu(outputs={"n": lambda v: int(v.t >= 0.37)}, attributes={"n": integer})
    reader = PythonFmu(
        inputs={"n": 0}, outputs={"y": lambda v: v.n}, attributes={"n": {"type": target}}
    )
    results = simulate(
        {"s": switch, "r": reader},
        ["s.n -> r.n"],
        algorithm=GaussSeidel(),
        step_size=Locate("0.1", tolerance=1e-6),
        stop_time=0.5,
    )
    change = results.time[results["s.n"] == 1][0]
    assert 0.37 <= change <= 0.37 + 1e-6
    assert results.statistics.attempts - results.statistics.steps <= 20
    assert set(results.time) - {change} == {k / 10 for k in range(6)}


def test_two_changes_in_one_step_are_both_located(simulate: Simulate) -> None:
    integer = {"type": DataType.INT32}
    count = PythonFmu(
        outputs={"n": lambda v: int(v.t >= 0.33) + int(v.t >= 0.37)}, attributes={"n": integer}
    )
    reader = PythonFmu(inputs={"n": 0}, outputs={"y": lambda v: v.n}, attributes={"n": integer})
    results = simulate(
        {"s": count, "r": reader},
        ["s.n -> r.n"],
        step_size=Locate("0.1", tolerance=1e-9),
        stop_time=0.5,
    )
    changes = [results.time[results["s.n"] == n][0] for n in (1, 2)]
    assert changes == pytest.approx([0.33, 0.37], abs=1e-9)


def located(simulate: Simulate, switch: PythonFmu, **settings: Any) -> Results:
    """A switch with the output n, whose value a reader follows."""
    reader = PythonFmu(inputs={"n": 0}, attributes={"n": {"type": DataType.INT32}})
    rule = Locate("0.1", tolerance=1e-6)
    return simulate(
        {"s": switch, "r": reader}, ["s.n -> r.n"], step_size=rule, stop_time=0.5, **settings
    )


def test_a_change_at_the_start_of_a_step_may_be_late() -> None:
    """The controller is stepped with the room: it sees the temperature of the start of a step, and switches there."""
    thermostat = reference_path("systems/thermostat-fmi2.ssp")
    with pytest.warns(AccuracyWarning, match="'controller' may have changed its discrete outputs"):
        results = Simulation(
            thermostat,
            stop_time=3,
            step_size=Locate(0.1),
            algorithm="Jacobi",
            event_clock="none",
        ).run()
    first = results.events[0].time
    assert first == pytest.approx(1.1, abs=1e-9)
    assert "first at t = 1.1 s, by at most 0.1 s" in results.statistics.warnings[0]


def test_a_change_that_another_one_causes_at_once_is_not_late(simulate: Simulate) -> None:
    integer = {"type": DataType.INT32}
    first = PythonFmu(outputs={"n": lambda v: int(v.t >= 0.37)}, attributes={"n": integer})
    second = PythonFmu(
        inputs={"m": 0}, outputs={"n": lambda v: v.m}, attributes={"n": integer, "m": integer}
    )
    reader = PythonFmu(inputs={"n": 0}, attributes={"n": integer})
    results = simulate(
        {"a": first, "b": second, "c": reader},
        ["a.n -> b.m", "b.n -> c.n"],
        step_size=Locate("0.1", tolerance=1e-6),
        stop_time=0.5,
        algorithm="Jacobi",
    )
    assert [e.components for e in results.events] == [("a",), ("b",)]
    assert results.events[1].time - results.events[0].time <= 2e-6
    assert results.statistics.warnings == ()


def test_a_pair_of_changes_within_a_step_may_have_hidden_others(simulate: Simulate) -> None:
    """The pulses of 0.04 s are in the second step, where none is found, and at 0.3 s."""
    switch = PythonFmu(
        outputs={"n": lambda v: int(0.13 <= v.t < 0.17 or 0.28 <= v.t < 0.32)},
        attributes={"n": {"type": DataType.INT32}},
    )
    with pytest.warns(AccuracyWarning, match=r"'s' has changed .* back within 0\.04"):
        results = located(simulate, switch)
    assert [e.time for e in results.events] == pytest.approx([0.28, 0.32], abs=2e-6)
    assert "inside a step, this is not found" in results.statistics.warnings[0]


def test_a_change_that_does_not_come_again_is_named(simulate: Simulate) -> None:
    """The first step over 0.25 s changes the output, and no later one does."""
    tried: list[float] = []

    def step(v: Any, h: float) -> None:
        if v.t < 0.25 < v.t + h:
            tried.append(h)

    switch = PythonFmu(
        outputs={"n": lambda v: int(v.t > 0.25 and len(tried) == 1)},
        step=step,
        attributes={"n": {"type": DataType.INT32}},
    )
    with pytest.warns(AccuracyWarning, match="a discrete output of 's' changed in a step from"):
        results = located(simulate, switch)
    assert results.time[-1] == 0.5


# Time events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [1.0, 3.5])
def test_time_events_are_met_on_a_grid_by_who_cannot_return_early(
    simulate: Simulate, stop: float
) -> None:
    times = (0.75, 1.0, 2.35)

    def update(v: Any) -> UpdateAnswer:
        v.n = float(sum(v.t >= t for t in times))
        return UpdateAnswer(next_event_time=min((t for t in times if t > v.t), default=inf))

    timed = PythonFmu(
        states={"n": 0.0}, outputs={"y": lambda v: v.n}, update=update, has_event_mode=True
    )
    results = simulate({"timed": timed}, event_mode=True, stop_time=stop)
    due = [t for t in times if t <= stop]
    assert [e.time for e in results.events] == due
    for n, t in enumerate(due):
        assert results["timed.y"][results.time == t].tolist() == [n, n + 1]
    assert results.time[-1] == stop
    assert set(results.time) == {k / 10 for k in range(round(10 * stop) + 1)} | set(due)


def has_no_sliver(unit: PythonFmu) -> bool:
    return all(h > 1e-3 for _, h in unit.instances[0].called(FmiCall.DO_STEP))


@pytest.mark.parametrize("due", [3 * 0.1, 0.3, 0.7999999999999999, 0.7 + 0.1, 0.9999999999999999])
def test_no_sliver_lies_between_a_time_event_and_the_grid(simulate: Simulate, due: float) -> None:
    timed = PythonFmu(
        outputs={"y": lambda v: v.t},
        update=lambda v: UpdateAnswer(next_event_time=due if v.t < due else inf),
        has_event_mode=True,
    )
    results = simulate({"timed": timed}, event_mode=True, stop_time=1, step_size=0.1)
    assert has_no_sliver(timed)
    assert [e.time for e in results.events] == [due]
    assert results.time[-1] == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize("rule", [FixedStep("0.1"), FreeStep("0.1")], ids=["grid", "free"])
def test_no_sliver_lies_between_a_jump_of_an_input_and_the_grid(
    simulate: Simulate, tmp_path: Path, rule: StepRule[Any]
) -> None:
    file = tmp_path / "input.csv"
    rows = [(0.0, 0), (3 * 0.1, 0), (3 * 0.1, 1), (0.7999999999999999, 1), (0.7999999999999999, 2)]
    file.write_text("time,a.u\n" + "".join(f"{t!r},{u}\n" for t, u in rows), encoding="utf-8")
    reader = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.u})
    results = simulate({"a": reader}, stop_time=1, step_size=rule, input=file)
    assert has_no_sliver(reader)
    assert sum(s.count for s in results.steps) == 10
    assert results["a.y"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]


def test_who_cannot_vary_its_step_meets_a_jump_on_the_grid_but_for_rounding(
    simulate: Simulate, tmp_path: Path
) -> None:
    file = tmp_path / "input.csv"
    file.write_text(f"time,a.u\n0,0\n{3 * 0.1!r},0\n{3 * 0.1!r},1\n", encoding="utf-8")
    reader = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: v.u},
        can_handle_variable_communication_step_size=False,
    )
    results = simulate({"a": reader}, stop_time=5 * 0.1, step_size=0.1, input=file)
    assert results.statistics.notes == ()
    assert results["a.y"].tolist() == [0, 0, 0, 0, 1, 1]


# Shared events --------------------------------------------------------------------------------------------------------


def member(
    *, stops: bool = True, may_stop: bool = True, payload: tuple[Payload, ...] = ()
) -> PythonFmu:
    """x falls by 1 per second from 0.55, stops at 0 and announces it; the trigger lets it begin anew. y is t**2."""

    def step(v: Any, h: float) -> StepAnswer | None:
        if stops and 0.0 < v.x <= h + 1e-12:
            end, v.x, v.on = v.t + v.x, 0.0, 1.0
            return StepAnswer(end, early=end < v.t + h, event=True)
        v.x -= h
        return None

    def update(v: Any) -> None:
        if v.hit:
            v.x, v.n = 0.55, v.n + 1
        v.on = 0.0

    event = EventDeclaration("hit", Scope.SHARED, (Indicator("z"),), "out", "hit", payload)
    return PythonFmu(
        inputs={"hit": False, "w": 0.0},
        states={"x": 0.55, "on": 0.0, "n": 0.0},
        outputs={
            "z": lambda v: v.x,
            "n_hits": lambda v: v.n,
            "out": lambda v: bool(v.on),
            "y": lambda v: v.t**2,
            "dy": lambda v: 2 * v.t,
        },
        attributes={
            "hit": CLOCK,
            "out": CLOCK,
            "w": {"variability": Variability.DISCRETE, "clocks": ("hit",)},
            "dy": {"derivative_of": "y"},
        },
        step=step,
        update=update,
        events=[event],
        has_event_mode=True,
        might_return_early_from_do_step=may_stop,
    )


def test_an_event_that_both_members_announce_happens_once_in_each(simulate: Simulate) -> None:
    units = {"a": member(), "b": member()}
    results = simulate(
        units,
        shared_events={"crash": ["a.hit", "b.hit"]},
        event_clock=EarlyReturn(),
        stop_time=1.5,
    )
    assert [e.name for e in results.events] == ["crash", "crash"]
    assert [e.time for e in results.events] == pytest.approx([0.55, 1.1])
    for unit in units.values():
        assert unit.instances[0].was_set("hit") == [True, True]
    assert (results["a.n_hits"][-1], results["b.n_hits"][-1]) == (2, 2)


def test_an_event_that_one_member_announces_happens_in_the_other_too(simulate: Simulate) -> None:
    """b does not see it: it never stops by itself."""
    units = {"a": member(), "b": member(stops=False, may_stop=False)}
    results = simulate(
        units,
        shared_events={"crash": ["a.hit", "b.hit"]},
        event_clock=EarlyReturn(),
        stop_time=1.0,
    )
    assert [(e.name, e.components) for e in results.events] == [("crash", ("a", "b"))]
    assert (results["a.n_hits"][-1], results["b.n_hits"][-1]) == (1, 1)
    assert results["b.z"][-1] == pytest.approx(0.1)


def test_an_event_that_check_finds_where_an_fmu_announces_it_is_one_event(
    simulate: Simulate,
) -> None:
    units = {"a": member(), "b": member(stops=False, may_stop=False)}
    results = simulate(
        units,
        shared_events={"crash": ["a.hit", "b.hit"]},
        algorithm=Sequential("a"),
        event_clock=Check(),
        stop_time=1.0,
    )
    assert [e.name for e in results.events] == ["crash"]
    for unit in units.values():
        assert unit.instances[0].was_set("hit") == [True]


@pytest.mark.filterwarnings("ignore:the event 'crash' was found late")
@pytest.mark.parametrize(("stops", "taken"), [(True, 0.25 + 1.0 * 0.05), (False, 0.6**2)])
def test_the_first_one_gets_extrapolated_payload_only_at_an_event_within_its_step(
    simulate: Simulate, stops: bool, taken: float
) -> None:
    """An event that Check finds is at the end of a step, where the other one has been computed."""
    payload = (Payload("y", "w"),)
    units = {
        "a": member(stops=stops, payload=payload),
        "b": member(stops=False, may_stop=False, payload=payload),
    }
    simulate(
        units,
        shared_events={"crash": ["a.hit", "b.hit"]},
        algorithm=Sequential("a"),
        event_clock=Check(),
        stop_time=1.0,
    )
    assert units["a"].instances[0].was_set("w") == pytest.approx([taken], rel=1e-12)


# Sweeps ---------------------------------------------------------------------------------------------------------------


def wavering(**more: Any) -> PythonFmu:
    """Has its event within a step if its input is above 0.5 at the end of it, and feeds itself over the other one: then
    there is an event in one sweep and none in the next. In steps below 0.03 s there is none."""

    def step(v: Any, h: float) -> StepAnswer | None:
        if h > 0.03 and v.course("u", v.t + h) > 0.5 and v.t < 0.5:
            v.x = -1.0
            return StepAnswer(v.t + h / 2, early=True)
        v.x = 1.0
        return None

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 1.0},
        outputs={"y": lambda v: v.x},
        step=step,
        has_event_mode=True,
        might_return_early_from_do_step=True,
        provides_intermediate_update=True,
        attributes={"u": {"intermediate_update": True}},
        **more,
    )


SWEEPS = Waveform(Jacobi(Polynomial(2, 0)))


def test_a_step_whose_sweeps_do_not_converge_is_tried_with_half_its_length(
    simulate: Simulate,
) -> None:
    units = {"a": wavering()}
    results = simulate(
        units, ["a.y -> a.u"], algorithm=SWEEPS, event_clock=EarlyReturn(), stop_time=0.7
    )
    assert results.statistics.rejections > 0
    assert {str(s.cause) for s in results.steps} == {"grid", "error", "stop time"}
    assert results.time[-1] == 0.7
    assert results.events == ()


def test_sweeps_that_never_converge_end_with_the_reason(simulate: Simulate) -> None:
    restless = iter(range(10**9))

    def step(v: Any, h: float) -> StepAnswer:
        return StepAnswer(v.t + h * (0.5 + 0.25 * (next(restless) % 2)), early=True)

    unit = wavering()
    unit.step = step
    with pytest.raises(ConvergenceError, match=r"^An iteration did not converge in the step from"):
        simulate(
            {"a": unit}, ["a.y -> a.u"], algorithm=SWEEPS, event_clock=EarlyReturn(), stop_time=1
        )


def test_sweeps_with_held_inputs_of_an_fmu_that_stops_are_refused(simulate: Simulate) -> None:
    with pytest.raises(OptionError) as caught:
        simulate(
            {"a": wavering()},
            ["a.y -> a.u"],
            algorithm=Waveform(Jacobi()),
            event_clock=EarlyReturn(),
            stop_time=1,
        )
    message = str(caught.value)
    assert "those of 'a' are held" in message
    assert "--inputs 2,0" in message


def test_sweeps_need_all_fmus_to_go_back(simulate: Simulate) -> None:
    """Also the only one that stops: in a single sweep it need not."""
    units = {"a": wavering(can_get_and_set_fmu_state=False)}
    with pytest.raises(ProgramError, match=r"^'a' may have to go back when an FMU stops"):
        simulate(units, ["a.y -> a.u"], algorithm=SWEEPS, event_clock=EarlyReturn(), stop_time=1)


def test_sweeps_with_an_fmu_that_stops_and_takes_no_polynomials_are_refused(
    simulate: Simulate,
) -> None:
    """It gets the mean of the polynomial, by which it finds its events at other times."""
    unit = wavering()
    unit.model = replace(
        unit.model,
        capabilities=replace(unit.model.capabilities, provides_intermediate_update=False),
    )
    with pytest.raises(OptionError, match="Use the event clock Predictive"):
        simulate(
            {"a": unit}, ["a.y -> a.u"], algorithm=SWEEPS, event_clock=EarlyReturn(), stop_time=1
        )

"""The events of the two masses: policies, triggers, payload, announcements, look-ahead, polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fmpy import simulate_fmu
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

M1, M2 = 0.2, 0.3
X1, X2 = -2.0, -3.2  # [m] 0.1 m between blocks of 1.1 m
V1, V2 = -11.4346703, 7.42302702  # [m/s]
AFTER1, AFTER2 = 11.194566484, -7.663130836
TIME = 0.1 / (V2 - V1)
FREE = {"k2": 0.0, "d2": 0.0, "g": 0.0}
EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}
EXECUTE, ANNOUNCE, IGNORE = 0, 1, 2


def masses(
    instantiate: Instantiate, version: str, policy: int = EXECUTE, **options: Any
) -> tuple[Instance, Instance]:
    """Both masses, without springs and gravity, on the way to their collision at TIME."""
    upper = instantiate("TwoMassUpper", version, loggingOn=True, **options)
    lower = instantiate("TwoMassLower", version, loggingOn=True, **options)
    free = {**FREE, "eventPolicy": policy}
    upper.initialize(x=X1, v=V1, u_x=X2, u_v=V2, **free, k1=0.0, d1=0.0)
    lower.initialize(x=X2, v=V2, u_x=X1, u_v=V1, **free)
    if options.get("eventModeUsed"):
        for mass in (upper, lower):
            mass.update()
            mass.fmu.enterStepMode()
    return upper, lower


def below_ceiling(instantiate: Instantiate, version: str, policy: int, **options: Any) -> Instance:
    """The upper mass alone in free flight with 3.5 m/s; it touches the ceiling at 0.1 s."""
    mass = instantiate("TwoMassUpper", version, loggingOn=True, **options)
    free = {**FREE, "k1": 0.0, "d1": 0.0, "eventPolicy": policy}
    mass.initialize(x=-0.9, v=3.5, u_x=-100.0, u_v=0.0, **free)
    if options.get("eventModeUsed"):
        mass.update()
        mass.fmu.enterStepMode()
    return mass


def refused(mass: Instance, call: Callable[[], object], message: str) -> None:
    with pytest.raises(FMICallException, match="error"):
        call()
    assert mass.log[-1].endswith(message)


def assert_conserved(v1: float, v2: float) -> None:
    """A few roundings; the momentum is a difference of terms of about 2 kg m/s."""
    assert M1 * v1 + M2 * v2 == approx(M1 * V1 + M2 * V2, abs=1e-14)
    assert M1 * v1**2 + M2 * v2**2 == approx(M1 * V1**2 + M2 * V2**2, rel=1e-14)


# FMI 3.0, Event Mode


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE])
def test_a_step_returns_early_at_the_left_limit(instantiate: Instantiate, policy: int) -> None:
    for mass, v in zip(masses(instantiate, "fmi3", policy, **EVENTS), (V1, V2), strict=True):
        event, terminate, early, last = mass.step(0.01)
        assert (event, terminate, early) == (True, False, True)
        assert last == approx(TIME, abs=2e-13)
        assert mass["v"] == v
        assert mass["collision.z[1]"] == approx(0.0, abs=1e-11)
        assert mass["collision.z[1]"] <= 0.0
        mass.fmu.enterEventMode()
        assert mass.active("collision.out")
        mass.update()
        assert not mass.active("collision.out")


def test_policy_0_executes_an_event_with_its_own_inputs(instantiate: Instantiate) -> None:
    upper, lower = masses(instantiate, "fmi3", EXECUTE, **EVENTS)
    for mass in (upper, lower):
        mass.step(0.01)
        mass.fmu.enterEventMode()
        mass["u_v"] = 1000.0  # too late: the event has happened with the inputs of its time
        assert mass["collision.z[2]"] != approx(V1 - V2)
        assert mass.update().states_changed
        mass.fmu.enterStepMode()
    assert (upper["v"], lower["v"]) == approx((AFTER1, AFTER2), abs=1e-8)
    assert_conserved(upper["v"], lower["v"])


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE, IGNORE])
def test_a_trigger_brings_the_payload_and_both_reset_once(
    instantiate: Instantiate, policy: int
) -> None:
    """Both may announce the event too, at the same instant: it stays one event."""
    pair = masses(instantiate, "fmi3", policy, **EVENTS)
    for mass in pair:
        mass.step(0.01 if policy != IGNORE else TIME)
        mass.fmu.enterEventMode()
        assert mass.active("collision.out") == (policy != IGNORE)
    left = [mass["v"] for mass in pair]
    assert left == [V1, V2]
    for mass, w in zip(pair, reversed(left), strict=True):
        mass.activate("collision.in")
        mass["collision.w"] = w
    assert [mass["v"] for mass in pair] == left
    assert all(mass.update().states_changed for mass in pair)
    upper, lower = pair
    right = [upper["v"], lower["v"]]
    assert right == approx([AFTER1, AFTER2], abs=1e-8)
    assert_conserved(*right)
    for mass, other in ((upper, lower), (lower, upper)):
        assert mass["collision.z[2]"] == approx(AFTER1 - AFTER2, abs=1e-7)  # before inputs are set
        mass["u_v"] = other["v"]
        mass["u_x"] = other["x"]
        assert mass["collision.z[2]"] == approx(AFTER1 - AFTER2, abs=1e-7)
        assert not mass.update().states_changed
        assert len([m for m in mass.log if m.startswith("Event")]) == 1
        mass.fmu.enterStepMode()
        assert mass.step(0.01)[0] is False
    assert [upper["v"], lower["v"]] == right


def test_policy_1_leaves_a_shared_event_to_the_importer(instantiate: Instantiate) -> None:
    for mass in masses(instantiate, "fmi3", ANNOUNCE, **EVENTS):
        mass.step(0.01)
        v = mass["v"]
        mass.fmu.enterEventMode()
        assert not mass.update().states_changed
        mass.fmu.enterStepMode()
        assert mass["v"] == v


def test_the_payload_counts_and_not_the_own_input(instantiate: Instantiate) -> None:
    upper, _ = masses(instantiate, "fmi3", ANNOUNCE, **EVENTS)
    upper.step(0.01)
    upper.fmu.enterEventMode()
    upper.activate("collision.in")
    upper["collision.w"] = 1.0
    upper.update()
    assert upper["v"] == approx(((M1 - M2) * V1 + 2 * M2 * 1.0) / (M1 + M2), rel=1e-15)


@pytest.mark.parametrize(
    ("policy", "triggered"), [(EXECUTE, False), (EXECUTE, True), (ANNOUNCE, True)]
)
def test_a_private_event_is_executed_in_event_mode(
    instantiate: Instantiate, policy: int, triggered: bool
) -> None:
    mass = below_ceiling(instantiate, "fmi3", policy, **EVENTS)
    *_, last = mass.step(0.2)
    assert last == approx(0.1, abs=2e-13)
    mass.fmu.enterEventMode()
    assert mass.active("ceiling.out")
    assert not mass.active("collision.out")
    if triggered:
        mass.activate("ceiling.in")
    assert mass.update().states_changed
    assert mass["v"] == -3.5
    assert not mass.update().states_changed
    assert mass["v"] == -3.5
    mass.fmu.enterStepMode()
    mass.step(0.1)
    assert mass["x"] == approx(-0.55 - 0.35, abs=1e-12)


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE, IGNORE])
def test_an_importer_may_stop_at_a_private_event(instantiate: Instantiate, policy: int) -> None:
    mass = below_ceiling(instantiate, "fmi3", policy, **EVENTS)
    mass.step(0.1 - 1e-10)
    assert 0.0 < mass["ceiling.z[1]"] < 1e-9
    mass.fmu.enterEventMode()
    assert mass.update().states_changed == (policy == EXECUTE)
    if policy != EXECUTE:  # what has a trigger is left to it
        mass.activate("ceiling.in")
        assert mass.update().states_changed
    assert mass["v"] == -3.5


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE])
def test_an_event_at_the_end_of_a_step_is_no_early_return(
    instantiate: Instantiate, policy: int
) -> None:
    mass = below_ceiling(instantiate, "fmi3", policy, **EVENTS)
    assert mass.step(0.1 + 0.5e-10) == (True, False, False, 0.1 + 0.5e-10)
    mass.fmu.enterEventMode()
    assert mass.active("ceiling.out")


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE, IGNORE])
@pytest.mark.parametrize("early", [False, True])
def test_without_event_mode_or_early_return_no_step_stops(
    instantiate: Instantiate, policy: int, early: bool
) -> None:
    mass = below_ceiling(
        instantiate, "fmi3", policy, eventModeUsed=not early, earlyReturnAllowed=early
    )
    assert mass.step(0.2) == (False, False, False, 0.2)
    assert mass["v"] == (-3.5 if policy == EXECUTE else 3.5)


def test_policy_2_locates_nothing(instantiate: Instantiate, version: str) -> None:
    for mass in masses(instantiate, version, IGNORE):
        v = mass["v"]
        mass.step(0.01)
        assert mass["v"] == v
        assert mass.log == []


# FMI 2.0, counters


def test_policy_1_discards_a_step_with_an_event(instantiate: Instantiate) -> None:
    for mass, v in zip(masses(instantiate, "fmi2", ANNOUNCE), (V1, V2), strict=True):
        state = mass.fmu.getFMUState()
        assert mass.discarded_step(0.01) == approx(TIME, abs=2e-13)
        assert mass["v"] == v
        assert mass["collision.out"] == 1
        refused(mass, partial(mass.step, 0.1), "not allowed in the state stepFailed.")
        mass.fmu.setFMUState(state)
        mass.time = 0.0
        mass.step(TIME + 0.5e-10)
        assert mass["collision.out"] == 1
        mass.fmu.freeFMUState(state)


def test_policy_0_counts_the_events_that_it_executes(instantiate: Instantiate) -> None:
    for mass in masses(instantiate, "fmi2", EXECUTE):
        mass.step(0.01)
        assert (mass["collision.out"], mass["collision.in"]) == (1, 0)


@pytest.mark.parametrize("policy", [EXECUTE, ANNOUNCE, IGNORE])
def test_a_counter_shows_right_limits_at_once(instantiate: Instantiate, policy: int) -> None:
    upper, lower = pair = masses(instantiate, "fmi2", policy)
    for mass in pair:
        mass.step(TIME - 1e-12)
    left = [mass["v"] for mass in pair]
    for mass, w in zip(pair, reversed(left), strict=True):
        mass["collision.w"] = w
        mass["collision.in"] = 1
    right = [mass["v"] for mass in pair]
    assert right == approx([AFTER1, AFTER2], abs=1e-8)
    assert_conserved(*right)
    for mass, other in ((upper, lower), (lower, upper)):
        assert mass["collision.z[2]"] == approx(AFTER1 - AFTER2, abs=1e-7)
        assert mass["collision.dz[1]"] == mass["collision.z[2]"]
        mass["u_x"], mass["u_v"] = other["x"], other["v"]
        assert mass["collision.z[2]"] == approx(AFTER1 - AFTER2, abs=1e-7)
    for mass, v in zip(pair, right, strict=True):
        mass.step(0.01)
        assert mass["v"] == v
        mass.step(0.01)
        assert mass["v"] == v
        assert len([m for m in mass.log if m.startswith("Event")]) == 1


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_each_trigger_is_executed_also_where_a_step_has_executed_the_event(
    instantiate: Instantiate, version: str
) -> None:
    """The importer alone judges whether an event happens: two hits by the same payload are the motion before."""
    options = {"eventModeUsed": True} if version == "fmi3" else {}
    upper, _ = masses(instantiate, version, EXECUTE, **options)
    upper.step(TIME + 0.5e-10)
    assert upper["v"] == approx(AFTER1, abs=1e-8)
    once = ((M1 - M2) * upper["v"] + 2 * M2 * V2) / (M1 + M2)
    if version == "fmi2":
        upper["collision.w"] = V2
        upper["collision.in"] = 1
    else:
        upper.fmu.enterEventMode()
        upper.activate("collision.in")
        upper["collision.w"] = V2
        assert upper.update().states_changed
        upper.fmu.enterStepMode()
    assert upper["v"] == approx(once, rel=1e-15)
    upper.step(1e-9)
    assert upper["v"] == approx(once, abs=1e-6)
    assert len([m for m in upper.log if m.startswith("Event")]) == 2


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_second_trigger_at_one_instant_is_executed_too(
    instantiate: Instantiate, version: str
) -> None:
    options = {"eventModeUsed": True} if version == "fmi3" else {}
    upper, _ = masses(instantiate, version, IGNORE, **options)
    upper.step(TIME)
    if version == "fmi3":
        upper.fmu.enterEventMode()
    for count in (1, 2):
        expected = ((M1 - M2) * upper["v"] + 2 * M2 * V2) / (M1 + M2)
        if version == "fmi3":
            upper.activate("collision.in")
        upper["collision.w"] = V2
        if version == "fmi3":
            assert upper.update().states_changed
        else:
            upper["collision.in"] = count
        assert upper["v"] == approx(expected, rel=1e-15)


def test_a_counter_that_is_set_back_triggers_nothing(instantiate: Instantiate) -> None:
    upper, _ = masses(instantiate, "fmi2", IGNORE)
    upper.step(0.001)
    upper["collision.in"] = 1
    assert upper["v"] != V1
    upper["collision.in"] = 0
    assert upper["v"] == V1
    upper.step(0.001)
    assert upper["v"] == V1


@pytest.mark.parametrize("count", [3, -1, 2**31 - 1, -(2**31)])
def test_a_counter_that_changes_is_one_event_whatever_the_difference(
    instantiate: Instantiate, count: int
) -> None:
    upper, _ = masses(instantiate, "fmi2", IGNORE)
    upper["collision.in"] = count
    upper["collision.w"] = V2
    upper.step(0.001)
    assert upper["v"] == approx(AFTER1, abs=1e-8)
    upper.step(0.001)
    assert upper["v"] == approx(AFTER1, abs=1e-8)
    assert len(upper.log) == 1


def test_where_a_counter_starts_is_no_event(instantiate: Instantiate) -> None:
    mass = instantiate("TwoMassUpper", "fmi2").initialize(**{"collision.in": 7})
    mass.step(0.001)
    assert mass.log == []
    assert mass["v"] < 3.5


def test_a_private_event_has_a_counter_too(instantiate: Instantiate) -> None:
    mass = below_ceiling(instantiate, "fmi2", ANNOUNCE)
    mass.step(0.1 - 1e-12)
    mass["ceiling.in"] = 1
    assert (mass["v"], mass["ceiling.z[2]"]) == (-3.5, 3.5)
    mass.step(0.1)
    assert mass["v"] == -3.5


def test_after_a_trigger_the_acceleration_uses_the_partners_right_limit(
    instantiate: Instantiate,
) -> None:
    """With springs and dampers: a after the trigger is a with the inputs that come then."""
    mass = instantiate("TwoMassUpper", "fmi2").initialize(x=X1, v=V1, u_x=X2, u_v=V2, eventPolicy=2)
    mass.step(TIME)
    w = V2 + 0.0
    v, u_x = mass["v"], X2 + V2 * TIME
    mass["collision.w"] = w
    mass["collision.in"] = 1
    shown = mass["a"]
    mass["u_x"] = u_x
    mass["u_v"] = ((M2 - M1) * w + 2 * M1 * v) / (M1 + M2)
    assert shown == approx(mass["a"], rel=1e-14)


# FMU states in the middle of events


def through_bytes(mass: Instance, other: Instance) -> Instance:
    """The FMU state of `mass`, as bytes, into `other`."""
    state = mass.fmu.getFMUState()
    data = mass.fmu.serializeFMUState(state)
    mass.fmu.freeFMUState(state)
    state = other.fmu.deserializeFMUState(data)
    other.fmu.setFMUState(state)
    other.fmu.freeFMUState(state)
    other.time = mass.time
    return other


def test_a_pending_event_is_part_of_the_state(instantiate: Instantiate) -> None:
    upper, _ = masses(instantiate, "fmi3", EXECUTE, **EVENTS)
    upper.step(0.01)
    copy = through_bytes(upper, instantiate("TwoMassUpper", "fmi3", **EVENTS))
    for mass in (upper, copy):
        mass.fmu.enterEventMode()
        assert mass.active("collision.out")
    copy = through_bytes(upper, copy)  # in Event Mode
    copy.activate("collision.in")
    copy["collision.w"] = 1.0
    copy = through_bytes(copy, upper)  # with an active input clock
    copy.update()
    assert copy["v"] == approx(((M1 - M2) * V1 + 2 * M2 * 1.0) / (M1 + M2), rel=1e-15)


def test_a_trigger_that_waits_is_part_of_the_state(instantiate: Instantiate) -> None:
    upper, _ = masses(instantiate, "fmi2", IGNORE)
    upper["collision.in"] = 1
    upper["collision.w"] = V2
    assert upper["v"] == approx(AFTER1, abs=1e-8)
    copy = through_bytes(upper, instantiate("TwoMassUpper", "fmi2"))
    for mass in (upper, copy):
        mass.step(0.01)
        assert mass["v"] == approx(AFTER1, abs=1e-8)


def test_after_an_event_a_state_before_it_brings_it_back(instantiate: Instantiate) -> None:
    upper, _ = masses(instantiate, "fmi3", EXECUTE, **EVENTS)
    state = upper.fmu.getFMUState()
    for _ in range(2):
        assert upper.fmu.doStep(0.0, 0.01)[0]
        upper.fmu.enterEventMode()
        assert upper.update().states_changed
        upper.fmu.setFMUState(state)
        assert upper["v"] == V1
    upper.fmu.freeFMUState(state)


# Look-ahead


def look_ahead(
    sets: Sequence[Sequence[tuple[float, float]]],
    dt: float,
    c: float = 0.9,
    d: float = 2.0,
    t_min: float = 2e-3,
) -> float:
    """Tischer et al., LookAhead; `sets` are lists of pairs of an indicator before and now."""
    times = []
    for pairs in sets:
        t0 = -1.0
        for before, now in pairs:
            if now + d * (now - before) >= 0:
                t0 = -1.0
                break
            t0 = max(t0, max(c * dt * now / (before - now), t_min) if now > 0 else -1.0)
        if t0 >= t_min:
            times.append(t0)
    return min(times) if times else -1.0


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(0.5, 0.2), (-3, -4)], 0.048),
        ([(0.5, 0.4), (-3, -4)], -1),
        ([(0.5, 0.001), (-3, -4)], 0.002),
        ([(0.5, 0.2), (1, 0.4)], 0.048),
        ([(-0.1, -0.2), (-3, -4)], -1),
    ],
)
def test_the_function_of_these_tests_is_that_of_the_paper(
    pairs: list[tuple[float, float]], expected: float
) -> None:
    assert look_ahead([pairs], 0.08) == approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", ["TwoMassUpper", "TwoMassLower"])
@pytest.mark.parametrize("parameters", [(0.9, 2.0, 2e-3), (0.5, 1.0, 1e-2)])
def test_look_ahead(
    instantiate: Instantiate, version: str, model: str, parameters: tuple[float, float, float]
) -> None:
    """Through a second of free oscillation, with inputs of a partner that moves uniformly."""
    values: dict[str, Any] = dict(
        zip(("lookahead.c", "lookahead.d", "lookahead.tmin"), parameters, strict=True)
    )
    if model == "TwoMassLower":
        values |= {"f0": -10.2, "v": -6.0}
    mass = instantiate(model, version).initialize(**values)
    wall = "ceiling" if model == "TwoMassUpper" else "floor"
    pairs = [[f"{event}.z[1]", f"{event}.z[2]"] for event in (wall, "collision")]
    u_x, u_v = mass["u_x"], mass["u_v"]
    assert mass["lookahead.next"] == -1
    before = {name: mass[name] for pair in pairs for name in pair}
    found = set()
    for k in range(40):
        mass["u_x"] = u_x + u_v * 0.025 * k
        mass.step(0.025)
        now = {name: mass[name] for pair in pairs for name in pair}
        sets = [[(before[name], now[name]) for name in pair] for pair in pairs]
        expected = look_ahead(sets, 0.025, *parameters)
        assert mass["lookahead.next"] == approx(expected, rel=1e-9)
        assert mass["lookahead.next"] == mass["lookahead.next"]
        found.add(expected > 0)
        before = now
    assert found == {True, False}


# Polynomials


def test_a_polynomial_of_first_order_is_the_linear_input(
    instantiate: Instantiate, version: str
) -> None:
    linear = instantiate("TwoMassUpper", version).initialize()
    polynomial = instantiate("TwoMassUpper", version)
    polynomial.enter_initialization_mode()
    polynomial["inputOrder"] = 5
    set_polynomial(polynomial, [-8.8, 3.0, 0, 0, 0, 0])
    assert polynomial["a"] == linear["a"]
    polynomial.fmu.exitInitializationMode()
    for mass in (linear, polynomial):
        mass.step(0.5)
    for name in ("x", "v", "a", "collision.z[1]", "collision.z[2]", "collision.dz[2]"):
        assert polynomial[name] == approx(linear[name], rel=1e-13)


def set_polynomial(mass: Instance, coefficients: Sequence[float]) -> None:
    if mass.version == "fmi3":
        mass["u_poly"] = coefficients
    else:
        for k, c in enumerate(coefficients):
            mass[f"u_poly[{k}]"] = c


def test_a_polynomial_of_fifth_order(instantiate: Instantiate, version: str) -> None:
    """Without springs, the indicators are those of the polynomial and a uniform motion."""
    c = [-5.0, 1.0, -2.0, 3.0, 0.5, -1.5]
    mass = instantiate("TwoMassUpper", version)
    mass.enter_initialization_mode()
    for name in ("k1", "d1", *FREE):
        mass[name] = 0.0
    mass["inputOrder"] = 5
    mass["x"] = -3.0
    set_polynomial(mass, c)
    mass.fmu.exitInitializationMode()
    mass.step(0.4)
    s = 0.4
    u = [sum(math.perm(k, d) * c[k] * s ** (k - d) for k in range(d, 6)) for d in range(3)]
    assert mass["collision.z[1]"] == approx(-3.0 + 3.5 * s - u[0] - 1.1, rel=1e-13)
    assert mass["collision.z[2]"] == approx(3.5 - u[1], rel=1e-13)
    assert mass["collision.dz[2]"] == approx(-u[2], rel=1e-13)


@pytest.mark.parametrize("order", [0, 1, 5])
def test_derivatives_with_respect_to_the_polynomial(
    instantiate: Instantiate, version: str, order: int
) -> None:
    mass = instantiate("TwoMassUpper", version)
    mass.enter_initialization_mode()
    mass["inputOrder"] = order
    outputs = ["a", "ceiling.dz[2]", "collision.z[1]", "collision.z[2]", "collision.dz[2]"]
    unknowns = [mass.variables[name].valueReference for name in outputs]
    seed = [1.0, 10.0, 100.0, 1.0, 1.0, 1.0]
    first = mass.variables["u_poly" if version == "fmi3" else "u_poly[0]"].valueReference
    knowns = [first] if version == "fmi3" else list(range(first, first + 6))
    found = mass.fmu.getDirectionalDerivative(unknowns, knowns, seed)
    before = [mass[name] for name in outputs]
    set_polynomial(mass, seed)
    after = [mass[name] for name in outputs]
    assert list(found) == approx([b - a for a, b in zip(before, after, strict=True)], abs=1e-12)


def test_a_seed_of_a_wrong_length_is_refused(instantiate: Instantiate) -> None:
    mass = instantiate("TwoMassUpper", "fmi3").initialize()
    call = partial(mass.fmu.getDirectionalDerivative, [12], [4], [1.0])
    refused(mass, call, "the seed has 1 values, which is not what the knowns have together.")


# Errors


def test_what_is_set_where_with_event_mode(instantiate: Instantiate) -> None:
    mass = below_ceiling(instantiate, "fmi3", EXECUTE, **EVENTS)
    for name in ("eventPolicy", "inputOrder", "collision.w"):
        reference = mass.variables[name].valueReference
        message = f"'{name}' (value reference {reference}) cannot be set in Step Mode."
        refused(mass, partial(mass.__setitem__, name, 1), message)
    refused(
        mass, lambda: mass.activate("collision.in"), "fmi3SetClock is not allowed in Step Mode."
    )
    refused(mass, lambda: mass.active("collision.in"), "fmi3GetClock is not allowed in Step Mode.")
    refused(mass, mass.update, "fmi3UpdateDiscreteStates is not allowed in Step Mode.")
    mass.fmu.enterEventMode()
    refused(mass, lambda: mass.step(0.1), "fmi3DoStep is not allowed in Event Mode.")
    refused(mass, mass.fmu.enterEventMode, "fmi3EnterEventMode is not allowed in Event Mode.")
    mass["eventPolicy"] = 1
    mass["inputOrder"] = 5
    message = "cannot be set, because its clock is not active."
    refused(mass, lambda: mass.__setitem__("collision.w", 1.0), message)
    mass.activate("collision.in")
    mass["collision.w"] = 1.0
    refused(
        mass,
        lambda: mass.activate("collision.in", False),
        "the clock 'collision.in' cannot be deactivated.",
    )
    refused(
        mass,
        lambda: mass.activate("collision.out"),
        "'collision.out' (value reference 72) cannot be set in Event Mode.",
    )
    refused(
        mass,
        lambda: mass.fmu.getClock([mass.variables["x"].valueReference]),
        "the variable 'x' (value reference 10) is of type Float64.",
    )
    mass.fmu.enterStepMode()
    refused(mass, mass.fmu.enterStepMode, "fmi3EnterStepMode is not allowed in Step Mode.")


def test_without_event_mode_tunables_are_set_in_step_mode(
    instantiate: Instantiate, version: str
) -> None:
    mass = below_ceiling(instantiate, version, EXECUTE)
    mass["eventPolicy"] = 2
    mass["inputOrder"] = 5
    mass.step(0.2)
    assert mass["v"] == 3.5
    if version == "fmi3":
        refused(
            mass,
            mass.fmu.enterEventMode,
            "fmi3EnterEventMode: the FMU was instantiated without Event Mode.",
        )


@pytest.mark.parametrize(("name", "value"), [("eventPolicy", 3), ("inputOrder", 2)])
def test_a_tunable_that_makes_no_sense_ends_the_simulation(
    instantiate: Instantiate, version: str, name: str, value: float
) -> None:
    mass = below_ceiling(instantiate, version, EXECUTE)
    mass[name] = value
    with pytest.raises(FMICallException, match="error"):
        mass.step(0.1)
    assert mass.log[-1].startswith(f"{name} is {value}. It must be 0 (")


def test_an_announced_event_must_be_handled(instantiate: Instantiate) -> None:
    mass = below_ceiling(instantiate, "fmi3", EXECUTE, **EVENTS)
    mass.step(0.2)
    refused(mass, lambda: mass.step(0.1), "is to be handled before, in Event Mode.")
    mass.fmu.enterEventMode()
    mass.update()
    mass.fmu.enterStepMode()
    mass.step(0.1)


# Other importers


@pytest.mark.parametrize("event_mode", [False, True])
def test_fmpy_simulates_it_unchanged(reference: Path, version: str, event_mode: bool) -> None:
    if event_mode and version == "fmi2":
        pytest.skip("FMI 2.0 has no Event Mode")
    result = simulate_fmu(
        reference / version / "TwoMassUpper.fmu",
        stop_time=2.0,
        output_interval=0.125,
        use_event_mode=event_mode,
        early_return_allowed=event_mode,
        start_values={"u_x": -8.8, "u_v": 0.0, "x": -3.0, "v": 8.0},
        output=["x", "v"],
    )
    assert result["time"][-1] == 2.0
    assert result["x"].max() <= -0.55 + 1e-9
    assert result["v"].min() < -5.0  # it came back from the ceiling


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_forecast_is_0_where_an_event_is_due_that_nobody_has_executed(
    instantiate: Instantiate, version: str
) -> None:
    """It passes the ceiling after 0.1 s, and is to be triggered."""
    mass = below_ceiling(instantiate, version, IGNORE)
    mass.step(0.09)
    assert mass["lookahead.next"] > 0
    mass.step(0.02)
    assert mass["ceiling.z[1]"] < 0
    assert mass["lookahead.next"] == 0

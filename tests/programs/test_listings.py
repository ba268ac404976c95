"""The programs of each algorithm on four small plans are those that are kept as text.

After a wanted change: ``FMIMASTER_WRITE_LISTINGS=1 pytest tests/programs``, then read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu, parse, plan_of

from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    AlongLine,
    GaussSeidel,
    Jacobi,
    Sequential,
    Subsequence,
    Waveform,
)
from fmimaster.algorithms.assemble import assemble
from fmimaster.inputs.polynomial import FIRST_ORDER, Polynomial
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.program.listing import listing
from fmimaster.program.programs import Programs
from fmimaster.system.declarations import EventDeclaration, EventPolicy, Indicator, Payload, Scope
from fmimaster.system.model import Causality, DataType, Variability

LISTINGS = Path(__file__).parent / "listings"


def single() -> Plan:
    """One FMU with an open input and start values, of which one is structural."""
    unit = PythonFmu(
        parameters={"size": 1, "k": 0.0},
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.0},
        attributes={"size": {"type": DataType.UINT64, "causality": Causality.STRUCTURAL_PARAMETER}},
    )
    return plan_of({"unit": unit}, (), {"unit.size": 2, "unit.k": 1.0, "unit.u": 1.0})


def ring() -> Plan:
    """Two FMUs that feed each other, without direct feedthrough; one takes polynomials."""
    smooth = PythonFmu(
        inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, provides_intermediate_update=True
    )
    other = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0})
    return plan_of(
        {"smooth": smooth, "other": other}, ["smooth.y -> other.u", "other.y -> smooth.u"]
    )


def artificial() -> Plan:
    """G1 of loops.md: a ring of FMUs without a loop of variables, listed against the direction of stepping."""
    b = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, depends={"y": ["u"]})
    a = PythonFmu(
        inputs={"u1": 0.0, "u2": 0.0},
        outputs={"y1": lambda v: 0.0, "y2": lambda v: 0.0},
        depends={"y1": ["u1"], "y2": ["u2"]},
    )
    return plan_of({"b": b, "a": a}, ["a.y1 -> b.u", "b.y -> a.u2"])


def loop() -> Plan:
    """An algebraic loop, fed by a source with a discrete output and read by a sink without outputs."""
    integer = {"type": DataType.INT32}
    source = PythonFmu(outputs={"n": lambda v: 0}, attributes={"n": integer})
    gain = PythonFmu(
        inputs={"u": 0.0, "n": 0},
        outputs={"y": lambda v: 0.0},
        depends={"y": ["u", "n"]},
        attributes={"n": integer},
    )
    mirror = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, depends={"y": ["u"]})
    sink = PythonFmu(inputs={"u": 0.0})
    units = {"sink": sink, "gain": gain, "mirror": mirror, "source": source}
    connections = [
        "gain.y -> mirror.u",
        "mirror.y -> gain.u",
        "source.n -> gain.n",
        "gain.y -> sink.u",
    ]
    return plan_of(units, connections)


PLANS: list[Callable[[], Plan]] = [single, ring, artificial, loop]
LISTED: dict[str, Algorithm] = {
    "jacobi": Jacobi(),
    "jacobi-first-order": Jacobi(FIRST_ORDER),
    "jacobi-quadratic": Jacobi(Polynomial(3, 0)),
    "gauss-seidel": GaussSeidel(),
    "gauss-seidel-linear": GaussSeidel(Polynomial(2, 0)),
    "gauss-seidel-lin-levels": GaussSeidel(mode=AlongLine(), levels=True),
    "gauss-seidel-sub": GaussSeidel(mode=Subsequence(2)),
}


def stopping(policies: tuple[Mapping[int, Policy], ...] = ()) -> Plan:
    """s may return early, and its clock triggers t, which has Event Mode; d discards steps at an event that it shares
    with t, and counts its triggers."""
    clock, integer = {"type": DataType.CLOCK}, {"type": DataType.INT32}

    def hit(trigger: str) -> EventDeclaration:
        payload = (Payload("y", "w"),)
        return EventDeclaration("hit", Scope.SHARED, (Indicator("z"),), None, trigger, payload)

    def unit(events: list[EventDeclaration], **more: Any) -> PythonFmu:
        names = {"y": lambda v: 0.0, "dy": lambda v: 0.0, "z": lambda v: 1.0}
        attributes = {"dy": {"derivative_of": "y"}, **more.pop("attributes", {})}
        outputs = {**names, **more.pop("outputs", {})}
        return PythonFmu(
            outputs=outputs,
            attributes=attributes,
            events=events,
            provides_intermediate_update=True,
            **more,
        )

    discrete = {"variability": Variability.DISCRETE}
    s = unit(
        [],
        inputs={"u": 0.0},
        outputs={"tick": lambda v: False},
        attributes={"tick": clock},
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )
    t = unit(
        [hit("hit")],
        inputs={"u": 0.0, "tick": False, "hit": False, "w": 0.0},
        attributes={"tick": clock, "hit": clock, "w": {**discrete, "clocks": ("hit",)}},
        has_event_mode=True,
    )
    d = unit(
        [hit("count")],
        parameters={"policy": 0},
        inputs={"u": 0.0, "count": 0, "w": 0.0},
        attributes={"policy": integer, "count": integer, "w": discrete},
        event_policy=EventPolicy("policy", execute=0, announce=1, ignore=2),
    )
    return plan_of(
        {"s": s, "t": t, "d": d},
        ["s.y -> t.u", "s.tick -> t.tick", "t.y -> d.u", "d.y -> s.u"],
        shared_events={"crash": ["t.hit", "d.hit"]},
        use=EventUse(
            watched=True,
            policy=Policy.ANNOUNCE,
            policies=policies,
            early_return=True,
            event_mode=True,
        ),
    )


AT_EVENTS: dict[str, Algorithm] = {
    "aligned": Aligned(Jacobi(FIRST_ORDER)),
    "waveform": Waveform(Aligned(Jacobi(Polynomial(2, 1)))),
    "sequential": Sequential("s"),
}


def text_of(programs: Programs) -> str:
    """All programs, each with its name before it."""
    parts = (programs.initialize, programs.attempt, programs.commit, programs.terminate)
    return "\n".join("\n".join([f"# {p.name}", *map(str, p.instructions), ""]) for p in parts)


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", LISTED)
def test_programs_are_those_of_the_listing(name: str, plan: Callable[[], Plan]) -> None:
    programs = assemble(plan(), LISTED[name])
    path = LISTINGS / f"{name}-{plan.__name__}.txt"
    if os.environ.get("FMIMASTER_WRITE_LISTINGS"):
        path.write_text(text_of(programs), encoding="utf-8")
    assert text_of(programs) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: p.__name__)
def test_a_listing_can_be_read_back(plan: Callable[[], Plan]) -> None:
    made = plan()
    attempt = assemble(made, Jacobi(Polynomial(3, 0))).attempt
    assert parse("\n".join(map(str, attempt.instructions)), made) == attempt


@pytest.mark.parametrize("name", AT_EVENTS)
def test_programs_around_events_are_those_of_the_listing(name: str) -> None:
    """The event is that of all three, with both triggers of the shared one."""
    plan, algorithm = stopping(), AT_EVENTS[name]
    if policies := algorithm.policies(plan.step_order):
        plan = stopping(policies)
    programs = assemble(plan, algorithm)
    event = programs.variants[0].event((0, 1, 2), (1, 2), True)
    attempt = (programs.restart or programs.variants[0]).attempt
    written = {p.name: p for p in (attempt, event, programs.renew)}
    text = text_of(programs) + "\n# the attempt without history, an event, renewal\n"
    texts = [listing(program, plan, programs.hooks) for program in written.values()]
    text += "\n\n".join(texts) + "\n"
    path = LISTINGS / f"{name}-stopping.txt"
    if os.environ.get("FMIMASTER_WRITE_LISTINGS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_algorithm_is_listed_and_every_listing_has_its_algorithm() -> None:
    assert {type(algorithm) for algorithm in LISTED.values()} == {Jacobi, GaussSeidel}
    expected = {f"{name}-{plan.__name__}.txt" for name in LISTED for plan in PLANS}
    expected |= {f"{name}-stopping.txt" for name in AT_EVENTS}
    assert {path.name for path in LISTINGS.iterdir()} == expected

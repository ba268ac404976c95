"""Clocks and power bonds on pages about an FMU, a system or a plan, as data and as lines.

Of a clock: of which kind it is, when it ticks, what makes it active, and what it activates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fmimaster.base.text import aligned, listed, section
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import Causality, Model, Variable

if TYPE_CHECKING:
    from fmimaster.plan.plan import Plan

_BY_FMU = {
    IntervalVariability.CONSTANT: "no interval is declared",
    IntervalVariability.FIXED: "at an interval that the FMU gives at the start",
    IntervalVariability.TUNABLE: "at an interval that the FMU gives, and may change at events",
    IntervalVariability.CHANGING: "after an interval that the FMU gives at each tick",
    IntervalVariability.COUNTDOWN: "after an interval that the FMU starts at an event",
    IntervalVariability.TRIGGERED: "at ticks of the clock that is connected",
}
"""When an input clock ticks whose interval is not known before the run."""


def _clocked_by(model: Model, clock: Variable) -> list[str]:
    """Names of the variables that a clock activates."""
    return [v.name for v in model.variables if clock.name in v.clocks and v is not clock]


def _ticks(variable: Variable) -> str:
    """When a clock ticks, as a phrase."""
    clock = variable.clock or ClockAttributes()
    if variable.causality is not Causality.INPUT:
        return "at events of the FMU"
    if clock.interval is None:
        return _BY_FMU[clock.interval_variability]
    shift = f", first after {_seconds(clock.shift)} s" if clock.shift else ""
    given = ", given by the user" if clock.is_given else ""
    return f"every {_seconds(clock.interval)} s{shift}{given}"


def _seconds(time: Fraction) -> str:
    """A decimal number if it is one, otherwise a fraction."""
    rest = time.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return f"{float(time):.12g}" if rest == 1 else str(time)


# An FMU ---------------------------------------------------------------------------------------------------------------


def clocks_of_model(model: Model) -> list[dict[str, Any]]:
    """All clocks of an FMU."""
    return [
        {
            "name": v.name,
            "causality": v.causality.value,
            **_attributes(v.clock),
            "ticks": _ticks(v),
            "clocks": list(v.clocks),
            "clocked": _clocked_by(model, v),
        }
        for v in model.variables
        if v.clock is not None
    ]


def _attributes(clock: ClockAttributes) -> dict[str, Any]:
    """The attributes of a clock; the names are those of FMI 3.0, times are in s."""
    known = clock.interval is not None
    return {
        "intervalVariability": clock.interval_variability.value,
        "interval": None if clock.interval is None else float(clock.interval),
        "exactInterval": None if clock.interval is None else str(clock.interval),
        "intervalGiven": clock.is_given,
        "shift": float(clock.shift) if known else None,
        "exactShift": str(clock.shift) if known else None,
        "resolution": clock.resolution,
        "supportsFraction": clock.supports_fraction,
        "priority": clock.priority,
        "canBeDeactivated": clock.can_be_deactivated,
    }


def clock_rows(clocks: Iterable[Mapping[str, Any]], most: int | None) -> list[tuple[str, ...]]:
    """A row for each clock."""
    return [
        (
            c["name"],
            f"{c['intervalVariability']} {c['causality']}",
            _sentence(c, c["ticks"], c["clocked"], most),
        )
        for c in clocks
    ]


def _sentence(clock: Mapping[str, Any], ticks: str, clocked: list[str], most: int | None) -> str:
    """When a clock ticks, its priorities, and what it activates."""
    said = ticks
    if clock["clocks"]:
        said += f", only together with {listed(clock['clocks'])}"
    if clock["priority"] is not None:
        said += f", priority {clock['priority']}"
    if clocked:
        said += f"; activates {listed(clocked, len(clocked) if most is None else most)}"
    return said


# A plan ---------------------------------------------------------------------------------------------------------------


def clocks_of_plan(
    plan: Plan, priorities: Mapping[str, int | None], importer_fires: bool
) -> list[dict[str, Any]]:
    """All clocks of a system: as those of an FMU, with full names, and with what makes them active.

    Parameters
    ----------
    priorities
        Of the components that are discrete-event units.
    """
    names = [i.name for i in plan.instances]
    sources = {
        (t.instance, t.name): [f"{names[i]}.{clock}" for i, clock in t.clocks]
        for t in plan.triggers
    }
    events = {
        (m.instance, m.declaration.trigger): event.name
        for event in plan.events
        for m in event.members
        if importer_fires and m.trigger is not None
    }
    found = []
    for i, instance in enumerate(plan.instances):
        for clock in clocks_of_model(instance.model):
            by, what = _active(
                clock, sources.get((i, clock["name"]), []), events.get((i, clock["name"]))
            )
            found.append(
                {
                    **clock,
                    "name": f"{names[i]}.{clock['name']}",
                    "component": names[i],
                    "componentPriority": priorities.get(names[i]),
                    "activatedBy": by,
                    "activators": what,
                }
            )
    return found


def _active(
    clock: Mapping[str, Any], sources: list[str], event: str | None
) -> tuple[str, list[str]]:
    """Kind of what makes a clock active, and names."""
    if clock["causality"] != Causality.INPUT.value:
        return "fmu", []
    if sources:
        return "connection", sources
    if event is not None:
        return "event", [event]
    is_triggered = clock["intervalVariability"] == IntervalVariability.TRIGGERED.value
    if is_triggered and clock["interval"] is None:
        return "nothing", []
    return "time", []


def clocks_page(facts: Mapping[str, Any]) -> list[str]:
    """The section about the clocks of a plan; empty if there are none."""
    rows = []
    for c in facts["clocks"]:
        kind = f"{c['intervalVariability']} {c['causality']}"
        rows.append((c["name"], kind, _sentence(c, _by(c), c["clocked"], _MOST)))
    return section("Clocks, what makes them active, and what they activate", aligned(rows))


_MOST = 4
"""Most names of variables in a row."""


def _by(clock: Mapping[str, Any]) -> str:
    words: dict[str, str] = {
        "fmu": "at events of the FMU",
        "time": clock["ticks"],
        "connection": f"by {' or '.join(clock['activators'])}",
        "event": f"by the event {' or '.join(clock['activators'])}",
        "nothing": "nothing makes it active",
    }
    by: str = clock["activatedBy"]
    return words[by]


# Power bonds -----------------------------------------------------------------------------------------------------------


def planned_bonds(plan: Plan) -> list[dict[str, Any]]:
    """The power bonds of a plan, also those declared by FMUs; powers are positive from the first port to the second."""
    return [
        {
            "name": bond.name,
            "ports": [
                {
                    "component": plan.instances[port.instance].name,
                    "input": port.input,
                    "output": port.output,
                    "power": "out" if port.weight > 0 else "in",
                }
                for port in bond.ports
            ],
            "scale": bond.scale,
            "tolerance": bond.tolerance,
        }
        for bond in plan.power_bonds
    ]


def bonds_page(bonds: Iterable[Mapping[str, Any]]) -> list[str]:
    """The section of the page; empty without power bonds."""
    rows = []
    for bond in bonds:
        first, second = (f"{p['component']}.{port_in_short(p)}" for p in bond["ports"])
        given = [f"scale {bond['scale']:.6g} J"] if bond["scale"] is not None else []
        given += [f"tolerance {bond['tolerance']:.6g}"] if bond["tolerance"] is not None else []
        rows.append((bond["name"], f"{first},", f"{second}{';' * bool(given)}", ", ".join(given)))
    return section("Power bonds", aligned(rows))


def port_in_short(port: Mapping[str, Any]) -> str:
    """``"force * velocity enters"``."""
    return f"{port['input']} * {port['output']} {_DIRECTIONS[port['power']]}"


_DIRECTIONS = {"in": "enters", "out": "leaves", None: "has no direction"}

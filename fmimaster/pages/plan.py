"""The plan of a simulation, as data and as a page: order, delays, loops, conversions, events and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FmimasterError
from fmimaster.base.text import aligned, fitted, section
from fmimaster.configure.named import setting_text
from fmimaster.configure.settings import Settings
from fmimaster.pages import plan_events, plan_loops, plan_sequence
from fmimaster.pages.clocks_and_bonds import bonds_page, clocks_of_plan, clocks_page, planned_bonds
from fmimaster.plan.plan import Plan
from fmimaster.prepare.prepared import Prepared
from fmimaster.program.delays import Delay, course, delays, in_steps, reason
from fmimaster.program.instructions.base import Program
from fmimaster.program.listing import listing
from fmimaster.program.programs import Programs
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.clocks import common_divisor
from fmimaster.system.declarations import standard_in_words


@dataclass(frozen=True, repr=False)
class PlanPage:
    """How a system is computed; ``print`` shows it as a page that fits the terminal.

    Examples
    --------
    >>> from fmimaster import Simulation, reference_path
    >>> plan = Simulation(reference_path("systems/two-mass-b1-mixed.ssp")).plan()
    >>> plan.facts["order"]
    ['lower', 'upper']
    """

    facts: dict[str, Any]
    """The same as plain data, with the keys of ``fmimaster plan --json``."""

    def __str__(self) -> str:
        return "\n".join(page(self.facts))

    __repr__ = __str__


def plan_facts(
    settings: Settings,
    prepared: Prepared,
    later: Iterable[tuple[str, Prepared | FmimasterError]] = (),
    *,
    programs: bool = False,
) -> dict[str, Any]:
    """The plan as plain data: the keys are part of the interface, and tests/cli/test_plan.py tests them.

    Parameters
    ----------
    later
        Further structures of the system: when each begins, and the structure, or why it cannot be simulated.
    programs : bool
        Whether the instructions of the programs are included, and their line numbers in reasons.
    """
    plan, schedule = prepared.plan, prepared.schedule
    clock = settings.clock_used
    fires = clock is not None and clock.fires
    late, rule = delays(prepared.programs.attempt, plan), schedule.rule
    pending = bool(prepared.programs.pending)
    step_loops = plan_loops.step_loops(prepared.programs.attempt, plan, is_measured=pending)
    sequence = plan_sequence.sequence(plan, late, settings.sequence)
    return {
        "system": prepared.description.system.name,
        "algorithm": setting_text(settings.algorithm_used),
        "eventClock": setting_text(clock) if clock else None,
        "times": {
            "start": float(schedule.start),
            "stop": float(schedule.stop),
            "step": float(schedule.rule.exact_size),
            "rule": setting_text(rule),
            "origins": _origins(settings, prepared),
            "points": [float(p) for p in schedule.points],
            "control": rule.control,
        },
        "components": _components(prepared),
        "order": sequence.pop("order"),
        "sequence": sequence,
        "initialLoops": plan_loops.initial_loops(plan),
        "stepLoops": step_loops,
        "constraints": plan_loops.constraints(plan),
        "powerBonds": planned_bonds(plan),
        "possible": plan_loops.possible(plan, step_loops),
        "connections": [
            _connection(d, plan, programs) | _late_by_rates(d, plan, rule) for d in late
        ],
        "clocks": clocks_of_plan(plan, _priorities(prepared), fires),
        "events": plan_events.events(plan, fires),
        "triggers": plan_events.triggers(plan, fires),
        "warnings": list(prepared.warnings),
        "notes": list(prepared.notes),
        "programs": {
            name: listing(p, plan, prepared.programs.hooks).splitlines()
            for name, p in (_programs(plan, prepared.programs, fires) if programs else ())
        },
        "structures": [_later(settings, begin, found, programs=programs) for begin, found in later],
    }


def _components(prepared: Prepared) -> list[dict[str, Any]]:
    rule, described = prepared.schedule.rule, dict(prepared.description.components())
    priorities = _priorities(prepared)
    elements = {n: c.adaptation.words for n, c in described.items() if c.adaptation is not None}
    return [
        {
            "name": i.name,
            "modelName": i.model.name,
            "fmiVersion": i.model.fmi_version,
            "stepSize": float(rule.size_of(i.name)),
            "tolerance": i.tolerance.value,
            "toleranceOrigin": i.tolerance.origin.value if i.tolerance.origin else None,
            "priority": priorities.get(i.name),
            "settings": elements.get(i.name),
        }
        for i in prepared.plan.instances
    ]


def _priorities(prepared: Prepared) -> dict[str, int | None]:
    return {name: c.priority for name, c in prepared.description.components()}


def _later(
    settings: Settings, begin: str, found: Prepared | FmimasterError, *, programs: bool
) -> dict[str, Any]:
    """A further structure of the system: its plan, or why there is none."""
    if isinstance(found, Prepared):
        plan = plan_facts(settings, found, programs=programs)
        return {"begin": begin, "error": None, "plan": plan}
    return {"begin": begin, "error": str(found), "plan": None}


def _origins(settings: Settings, prepared: Prepared) -> dict[str, str]:
    """The origin of start, stop and step: the settings, the system, the default, or a choice that a note reports."""
    given, described = settings, prepared.description.experiment
    rule = given.step_size
    size = rule.size if isinstance(rule, StepRule) else rule
    both = {
        "start": (given.start_time, described.start_time, "default"),
        "stop": (given.stop_time, described.stop_time, "note"),
        "step": (size, described.step_size, "note"),
    }
    return {
        what: "settings" if user is not None else "system" if system is not None else otherwise
        for what, (user, system, otherwise) in both.items()
    }


def _connection(delay: Delay, plan: Plan, lines: bool) -> dict[str, Any]:
    link = delay.route.link
    return {
        "target": f"{plan.instances[link.target].name}.{link.input.name}",
        "source": f"{plan.instances[link.source].name}.{link.output.name}",
        "sourceComponent": plan.instances[link.source].name,
        "targetComponent": plan.instances[link.target].name,
        "fresh": delay.is_fresh,
        "delay": delay.steps,
        "why": reason(delay, plan, lines=lines),
        "late": in_steps(delay),
        "course": course(delay),
        "factor": link.transformation.factor,
        "offset": link.transformation.offset,
        "notes": list(link.notes),
    }


def _programs(plan: Plan, programs: Programs, fires: bool) -> Iterator[tuple[str, Program]]:
    yield programs.initialize.name, programs.initialize
    yield from _attempts(programs)
    yield programs.commit.name, programs.commit
    yield from plan_events.event_programs(plan, programs, fires).items()
    yield programs.terminate.name, programs.terminate


# The page -------------------------------------------------------------------------------------------------------------


def page(facts: dict[str, Any]) -> list[str]:
    """The lines of the page."""
    clock = f", {facts['eventClock']}" if facts["eventClock"] else ""
    lines = fitted(f"{facts['system']}, {facts['algorithm']}{clock}")
    lines += section("Times", aligned(_times(facts["times"])))
    lines += _structure(facts)
    lines += section("Warnings", [f"  {warning}" for warning in facts["warnings"]])
    lines += section("Notes", [f"  {note}" for note in facts["notes"]])
    for name, program in facts["programs"].items():
        title = f"Program of the {name}" if name.startswith("event ") else f"Program '{name}'"
        lines += section(title, [f"  {line}" for line in program])
    for structure in facts["structures"]:
        title = f"Structure {structure['begin']}"
        if structure["plan"] is None:
            lines += section(title, [f"  cannot be simulated: {structure['error']}"])
        else:
            lines += ["", title, "=" * len(title), *_structure(structure["plan"])]
    return lines


def _structure(facts: dict[str, Any]) -> list[str]:
    """The sections about one structure of the system."""
    connections = facts["connections"]
    rows = [
        (c["target"], "<-", c["source"], f"{c['late']},", f"{c['course']}:", c["why"])
        for c in connections
    ]
    made = [
        (c["name"], c["modelName"], standard_in_words(c["fmiVersion"]), *_details(c, facts))
        for c in facts["components"]
    ]
    lines = section("Components", aligned(made))
    lines += plan_sequence.page(facts)
    lines += plan_loops.page(facts)
    lines += plan_loops.constraints_page(facts)
    lines += plan_loops.possible_page(facts)
    of_lines = " (in brackets: lines of the program 'attempt')"
    lines += section(
        f"Connections{of_lines if facts['programs'] else ''}", aligned(rows), if_empty="none"
    )
    lines += section("Conversions", aligned(_conversions(connections)), if_empty="none")
    lines += bonds_page(facts["powerBonds"])
    lines += clocks_page(facts)
    lines += plan_events.page(facts)
    return lines


def _times(times: dict[str, Any]) -> list[tuple[str, ...]]:
    words = {"default": "by default", "note": "see the notes"}
    rows: list[tuple[str, ...]] = [
        (what, f"{times[what]:.12g} s", words.get(by, f"from the {by}"))
        for what, by in times["origins"].items()
    ]
    if times["control"]:
        rows.append(("control", *times["control"]))
    if times["points"]:
        rows.append(
            (
                "points",
                f"{len(times['points'])}",
                "further communication points, at jumps of inputs",
            )
        )
    return rows


def _details(component: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    yield _tolerance(component) if component["settings"] is None else component["settings"]
    yield from _own_step(component, facts)
    if component["priority"] is not None:
        yield f"priority {component['priority']}"


def _own_step(component: dict[str, Any], facts: dict[str, Any]) -> tuple[str, ...]:
    """The step size, if components have their own."""
    sizes = {c["stepSize"] for c in facts["components"]}
    return (f"step {component['stepSize']:.12g} s",) if len(sizes) > 1 else ()


def _tolerance(component: dict[str, Any]) -> str:
    value, by = component["tolerance"], component["toleranceOrigin"]
    text = "no tolerance" if value is None else f"tolerance {value:g}"
    return f"{text} from the {by}" if by else text


def _conversions(connections: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for c in connections:
        words = list(c["notes"])
        if (c["factor"], c["offset"]) != (1.0, 0.0):
            words.append(f"value = {c['factor']:.12g} * source + {c['offset']:.12g}")
        if words:
            rows.append((c["target"], "<-", c["source"], "; ".join(words)))
    return rows


def _attempts(programs: Programs) -> Iterator[tuple[str, Program]]:
    """The step programs by name: one, or one for each different interval."""
    if programs.pattern is None:
        yield programs.attempt.name, programs.attempt
        return
    for k in sorted({*programs.pattern.intervals, programs.pattern.last}):
        yield f"attempt {k}", programs.variants[k].attempt


def _late_by_rates(delay: Delay, plan: Plan, rule: StepRule[Any]) -> dict[str, Any]:
    """The delay of a connection; empty if all components have the same step size."""
    if len(rule.sizes) == 1:
        return {}
    source, target = (
        plan.instances[i].name for i in (delay.route.link.source, delay.route.link.target)
    )
    size, published = rule.size_of(target), rule.size_of(source)
    late = size + published - common_divisor(size, published)
    return {
        "late": f"up to {float(late):.6g} s late",
        "why": f"'{target}' is set when its step begins; '{source}' has a new value every {float(published):.6g} s",
    }

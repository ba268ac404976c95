"""``fmimaster info``: the properties of an FMU, or the parts of a system."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from fmimaster.base.files import given_path
from fmimaster.base.text import aligned, clipped, count, fitted, listed, section, shortened
from fmimaster.commands.facts import fmu_facts, system_facts
from fmimaster.commands.text import write, write_json
from fmimaster.fmu.load import Loader
from fmimaster.pages.clocks_and_bonds import bonds_page, clock_rows, port_in_short
from fmimaster.system.declarations import Interface, standard_in_words
from fmimaster.system.model import Model
from fmimaster.system.read import read_system

_MOST_ROWS = 15
"""Most lines of one section."""
_MOST_LETTERS = 100
"""Most letters of a description."""
_MOST_NAMES = 8
"""Most entries of a list in one line."""

_SECTIONS = {
    "input": "Inputs",
    "output": "Outputs",
    "parameter": "Parameters",
    "structuralParameter": "Structural parameters",
}
_CAPABILITIES = {
    Interface.MODEL_EXCHANGE: "Capabilities, with the solver of fmimaster",
    Interface.SCHEDULED_EXECUTION: "Capabilities, as a component of fmimaster",
}
"""Titles where the capabilities are not only those of the FMU."""
_ONLY_WHOLE = {"local": "Local variables"}
"""Titles of variables that are listed only with all entries: FMUs can have thousands of them."""


def add_arguments(parser: ArgumentParser) -> None:
    """The file, and the form of the output."""
    parser.add_argument("path", metavar="SYSTEM", help="an FMU, an SSP, an SSD, or a folder")
    parser.add_argument(
        "--all", action="store_true", help="show long lists in full, and local variables"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    interface = "interface of an FMU: CoSimulation, ModelExchange, ScheduledExecution (default: the first that it has)"
    parser.add_argument("--interface", metavar="NAME", help=interface)


def run(arguments: Namespace) -> int:
    """Print the page; no library is loaded, so FMUs for other platforms can be read."""
    description = read_system(given_path(arguments.path))
    if arguments.interface is not None:
        description = description.with_interface(Interface.named(arguments.interface))
    most = None if arguments.all or arguments.json else _MOST_ROWS
    with Loader() as loader:
        if description.is_single_fmu:
            _, component = next(description.components())
            fmu = loader.file(component.source, component.interface)
            facts = fmu_facts(fmu, most)
            page = [] if arguments.json else _fmu_page(facts, fmu.model, most)
        else:
            facts = system_facts(description, loader)
            page = [] if arguments.json else _system_page(facts, most)
    if arguments.json:
        write_json(facts)
    else:
        write(page)
    return 0


# An FMU ---------------------------------------------------------------------------------------------------------------


def _fmu_page(facts: dict[str, Any], model: Model, most: int | None) -> list[str]:
    lines = [facts["modelName"]]
    lines += fitted(f"  {facts['description']}") if facts["description"] else []
    lines += ["", *aligned(_head(facts))]
    said = [(_value(value), _words(name)) for name, value in facts["capabilities"].items()]
    is_integrated = model.interface is Interface.MODEL_EXCHANGE
    title = _CAPABILITIES.get(model.interface, "Capabilities")
    lines += section(title, aligned(said))
    numbers = Counter(v.causality.value for v in model.variables)
    kinds = ", ".join(f"{n} {kind}" for kind, n in numbers.items())
    lines += ["", f"{count(len(model.variables), 'variable')}: {kinds}"]
    sections = _SECTIONS if most is not None else _SECTIONS | _ONLY_WHOLE
    for causality, title in sections.items():
        rows = [_variable_row(v, most) for v in facts["variables"] if v["causality"] == causality]
        lines += section(title, shortened(rows, most, numbers[causality]))
    clocks = clock_rows(facts["clocks"], most and _MOST_NAMES)
    lines += section("Clocks", shortened(clocks, most))
    rows = [(name, _depends(on, most)) for name, on in facts["dependencies"].items()]
    lines += section("Outputs depend directly on", shortened(rows, most, len(model.dependencies)))
    if is_integrated:
        lines += _states(facts, model, most)
    return lines + _events(facts, most) + _beside(facts, most)


def _states(facts: dict[str, Any], model: Model, most: int | None) -> list[str]:
    """The continuous states, and the number of event indicators."""
    rows = []
    for derivative in filter(None, map(model.variable, facts["stateDerivatives"])):
        state = model.variable(derivative.derivative_of or "")
        nominal = f"nominal {state.nominal:g}" if state and state.has_nominal else ""
        name = f"{derivative.derivative_of}{_shape(derivative.shape)}"
        rows.append((name, f"derivative {derivative.name}", nominal))
    title = f"Continuous states, and {count(model.n_event_indicators, 'event indicator')}"
    return section(title, shortened(rows, most), if_empty="no states")


def _events(facts: dict[str, Any], most: int | None) -> list[str]:
    """The events that the FMU declares in its manifest or by event indicators."""
    rows = [row for event in facts["events"] for row in _event_rows(event)]
    lines = section("Events", shortened(rows, most))
    if (row := facts["eventRow"]) is not None:
        said = f"  {row['method']}, because {row['because']}"
        lines += section("Events that affect others are treated by", fitted(said))
    if (policy := facts["eventPolicy"]) is not None:
        names = ("execute", "announce", "ignore")
        values = [f"{name} {policy[name]}" for name in names if policy[name] is not None]
        lines += section("Event policy", aligned([(policy["parameter"], ", ".join(values))]))
    if facts["lookAhead"] is not None:
        lines += section("Look-ahead", [f"  {facts['lookAhead']}"])
    polynomials = [(p["input"], *_polynomial(p)) for p in facts["inputPolynomials"]]
    return lines + section("Input polynomials", shortened(polynomials, most))


def _beside(facts: dict[str, Any], most: int | None) -> list[str]:
    """Parts of the FMU outside of its model description."""
    standards = [
        (s["name"], s["version"], _use(s), clipped(s["description"], most and _MOST_LETTERS))
        for s in facts["layeredStandards"]
    ]
    lines = section("Layered standards", shortened(standards, most))
    terminals = [
        (
            t["name"],
            t["kind"],
            t["matchingRule"],
            _listed((m["variable"] for m in t["members"]), most),
        )
        for t in facts["terminals"]
    ]
    lines += section("Terminals", shortened(terminals, most))
    ports = [(p["name"], port_in_short(p), f"by {p['where']}") for p in facts["powerPorts"]]
    return lines + section("Power ports", shortened(ports, most))


def _use(standard: dict[str, Any]) -> str:
    if standard["problems"]:
        return "invalid, see 'fmimaster validate'"
    return "used" if standard["known"] else "not known, not used"


def _event_rows(event: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each declared property of an event; the first row has the event's name."""
    said: list[tuple[str, str]] = []
    for i in event["indicators"]:
        derivative = f", derivative {i['derivative']}" if i["derivative"] else ""
        tolerance = f", tolerance {i['tolerance']:g}" if i["tolerance"] else ""
        said.append(("and" if said else "when", f"{i['name']} <= 0{derivative}{tolerance}"))
    said += [("only while", event["active"])] if event["active"] else []
    said += [("announces", event["announce"])] if event["announce"] else []
    said += [("triggered by", event["trigger"])] if event["trigger"] else []
    for p in event["payload"]:
        of = f" from {p['member']}" if p["member"] else ""
        said += [("sends", p["output"]), ("receives", p["input"] + of)]
    head = (event["name"], event["scope"])
    for row in said:
        yield *head, *row
        head = ("", "")


def _polynomial(p: dict[str, Any]) -> tuple[str, str]:
    names = p["coefficients"]
    text = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"
    text += f", derivative to {p['derivative']}" if p["derivative"] else ""
    return text, f"if {p['parameter']} = {p['value']}" if p["parameter"] else ""


def _head(facts: dict[str, Any]) -> list[tuple[str, str]]:
    here = facts["platformHere"]
    platforms = [f"{p} (this machine)" if p == here else p for p in facts["platforms"]]
    return [
        ("file", facts["file"]),
        ("FMI version", facts["fmiVersion"]),
        ("interfaces", _interfaces(facts)),
        ("made by", facts["generationTool"] or "not declared"),
        ("model identifier", facts["modelIdentifier"]),
        ("instantiation token", facts["instantiationToken"]),
        ("platforms", ", ".join(platforms) or "none: it has no binary"),
        ("default experiment", _experiment(facts["defaultExperiment"])),
    ]


def _interfaces(facts: dict[str, Any]) -> str:
    """The interfaces, with the one that is used if there are several."""
    if len(facts["interfaces"]) < 2:
        return ", ".join(facts["interfaces"])
    used = facts["interface"]
    return ", ".join(f"{i} (used)" if i == used else i for i in facts["interfaces"])


def _variable_row(v: dict[str, Any], most: int | None) -> tuple[str, ...]:
    shape = _shape(v["shape"])
    start = "" if v["start"] is None else f"start {_start(v['start'])}"
    description = clipped(v["description"], most and _MOST_LETTERS)
    return v["name"], v["type"] + shape, v["unit"] or "", start, description


def _shape(sizes: Iterable[int]) -> str:
    """``"[3, 2]"``; empty for a scalar."""
    text = ", ".join(map(str, sizes))
    return f"[{text}]" if text else ""


def _start(values: list[Any]) -> str:
    shown = [
        f"{v:.12g}" if isinstance(v, float) else v or "''" if isinstance(v, str) else f"{v}"
        for v in values[:6]
    ]
    return " ".join(shown) + (" ..." if len(values) > 6 else "")


def _depends(on: dict[str, Any], most: int | None) -> str:
    if not on["declared"]:
        return "not declared: all inputs are assumed"
    return _listed(on["inputs"], most) or "no input"


def _listed(names: Iterable[str], most: int | None) -> str:
    every = list(names)
    return listed(every, len(every) if most is None else _MOST_NAMES)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not declared" if value is None else f"{value:g}"


def _words(name: str) -> str:
    """``canGetAndSetFMUState`` → ``can get and set FMU state``."""
    text = ""
    for before, letter, after in zip(" " + name, name, name[1:] + " ", strict=False):
        starts = letter.isupper() and (before.islower() or after.islower())
        text += f" {letter.lower() if after.islower() else letter}" if starts else letter
    return text


def _experiment(said: dict[str, float | None]) -> str:
    labels = {
        "startTime": "start {:g} s",
        "stopTime": "stop {:g} s",
        "stepSize": "step {:g} s",
        "tolerance": "tolerance {:g}",
    }
    parts = [form.format(said[key]) for key, form in labels.items() if said[key] is not None]
    return ", ".join(parts) or "none"


# A system -------------------------------------------------------------------------------------------------------------


def _system_page(facts: dict[str, Any], most: int | None) -> list[str]:
    lines = [
        facts["name"],
        "",
        *aligned([("file", facts["file"]), ("experiment", _experiment(facts["experiment"]))]),
    ]
    components = [
        (
            c["name"],
            c["modelName"] or "cannot be used",
            standard_in_words(c["fmiVersion"]) if c["fmiVersion"] else "",
            c["source"],
            "" if c["priority"] is None else f"priority {c['priority']}",
        )
        for c in facts["components"]
    ]
    lines += section("Components", shortened(components, most))
    lines += shortened(
        [
            (f"{c['name']}: {' '.join(c['error'].splitlines())}",)
            for c in facts["components"]
            if c["error"]
        ],
        most,
    )
    connections = [(c["start"], "->", c["end"], _transformed(c)) for c in facts["connections"]]
    lines += section("Connections", shortened(connections, most), if_empty="none")
    shared = [
        (e["name"], ", ".join(f"{m['component']}.{m['event']}" for m in e["members"]))
        for e in facts["sharedEvents"]
    ]
    lines += section("Shared events", shortened(shared, most))
    lines += bonds_page(facts["powerBonds"])
    if facts["sequence"]:
        lines += section("Sequence of stepping", [f"  {', '.join(facts['sequence'])}"])
    parameters = [(p["name"], "=", *_given(p)) for p in facts["parameters"]]
    lines += section("Parameters", shortened(parameters, most))
    for title in ("Warnings", "Notes"):
        lines += section(title, shortened([(text,) for text in facts[title.lower()]], most))
    return lines


def _given(parameter: dict[str, Any]) -> tuple[str, str]:
    """The value that the FMU gets, and the one that is given if a mapping transforms it."""
    given = _with_unit(parameter["value"], parameter["unit"])
    if (received := parameter.get("received")) is None:
        return given, ""
    return _with_unit(_start(received["values"]), received["unit"]), f"mapped from {given}"


def _with_unit(value: object, unit: str | None) -> str:
    return f"{value}" if unit in (None, "", "1") else f"{value} {unit}"


def _transformed(connection: dict[str, Any]) -> str:
    if connection["factor"] == 1.0 and connection["offset"] == 0.0:
        return ""
    return f"times {json.dumps(connection['factor'])} plus {json.dumps(connection['offset'])}"

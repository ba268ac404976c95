"""The binary of HybridLinear: its variables with their value references, and the numbers of a system that it reads."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np
from hybrid_system import (
    EVENTS,
    INDICATORS,
    INPUTS,
    MODES,
    OUTPUTS,
    PARTNER,
    SIGNALS,
    STATES,
    Event,
    Form,
    HybridSystem,
)

MODEL = "HybridLinear"
"""The model whose description, manifest and data are made here."""
DATA = "resources/system.f64"
"""Where the numbers are in the FMU."""
COEFFICIENTS = 6
"""Of the polynomial of a signal."""

_FORM = np.dtype([("x", "f8", STATES), ("u", "f8", INPUTS), ("one", "f8")])
_TRANSITION = np.dtype(
    [
        *(("next", "f8"), ("count", "f8")),
        *(("indicator", _FORM, INDICATORS), ("reset", _FORM, STATES)),
        *(("partner", _FORM, PARTNER), ("input", "f8", PARTNER)),
    ]
)
_MODE = np.dtype(
    [
        *(("on", "f8"), ("rate", _FORM, STATES), ("output", _FORM, OUTPUTS)),
        ("event", _TRANSITION, EVENTS),
    ]
)
_SYSTEM = np.dtype(
    [
        *(("states", "f8"), ("events", "f8"), ("start_mode", "f8")),
        *(("trigger", "f8", EVENTS), ("payload", "f8", EVENTS)),
        *(("x", "f8", STATES), ("u", "f8", INPUTS), ("mode", _MODE, MODES)),
    ]
)
"""As the struct System of HybridLinear/model.c."""

REFERENCES = (
    {"time": 0, "u": 1, "poly": 20, "y": 100, "on": 110, "mode": 111, "x": 120, "dx": 130}
    | {"z": 140, "dz": 150, "largest": 160, "count": 170, "when": 180, "out": 190, "in": 200}
    | {"w": 210, "inputOrder": 220, "eventPolicy": 221, "data": 300}
)
"""Value reference of the first of each; those of poly are 10 apart."""


# Numbers


def data(system: HybridSystem, *, has_triggers: bool = True) -> bytes:
    """The content of the file that the binary reads."""
    s = np.zeros((), _SYSTEM)
    s["states"], s["events"], s["start_mode"] = (
        len(system.states),
        len(system.events),
        system.start_mode,
    )
    s["x"][: len(system.states)] = list(system.states.values())
    for k, name in enumerate(system.input_names):
        s["u"][k] = system.inputs.get(name, 0.0)
    s["payload"], s["mode"]["event"]["next"] = -1, -1
    for k, event in enumerate(system.events):
        s["trigger"][k] = has_triggers
        if event.payload:
            s["payload"][k] = system.input_names.index(event.payload[1])
    for number, mode in enumerate(system.modes):
        to = s["mode"][number]
        to["on"] = mode.on
        for k, state in enumerate(system.states):
            to["rate"][k] = _form(system, mode.rates.get(state, {}))
        for k, output in enumerate(system.outputs):
            to["output"][k] = _form(system, mode.outputs.get(output, {}))
        for k, event in enumerate(system.events):
            if number in event.transitions:
                _fill_transition(system, to["event"][k], event, number)
    return s.tobytes()


def _fill_transition(system: HybridSystem, to: Any, event: Event, mode: int) -> None:
    transition = event.transitions[mode]
    to["next"], to["count"] = transition.next, len(transition.indicators)
    for k, form in enumerate(transition.indicators):
        to["indicator"][k] = _form(system, form)
    for k, state in enumerate(system.states):
        to["reset"][k] = _form(system, transition.reset.get(state, {state: 1.0}))
    to["input"] = -1
    for k, (name, form) in enumerate(transition.partner.items()):
        to["input"][k] = system.input_names.index(name)
        to["partner"][k] = _form(system, form)


def _form(system: HybridSystem, form: Form) -> Any:
    made = np.zeros((), _FORM)
    states, inputs = list(system.states), list(system.input_names)
    for name, factor in form.items():
        if name == "1":
            made["one"] = factor
        elif name in states:
            made["x"][states.index(name)] = factor
        else:
            made["u"][inputs.index(name)] = factor
    return made


# The binary


def largest() -> ET.Element:
    """What the binary is made of: a description of all variables that any system can have, and of the numbers."""
    root = root_element(has_states=True)
    variables = root.find("ModelVariables")
    assert variables is not None
    variables.extend(_numbers())
    variables.extend(polynomial(f"poly_{k + 1}", k) for k in range(SIGNALS))
    discrete = {"causality": "output", "variability": "discrete"}
    variables.append(variable("Boolean", "on", reference("on"), "", **discrete))
    variables.append(variable("Int32", "mode", reference("mode"), "", start="0", **discrete))
    for k in range(EVENTS):
        count = reference("count", k)
        variables.append(variable("Int32", f"count_{k + 1}", count, "", start="0", **discrete))
    for k in range(EVENTS):
        variables.extend(_of_event(k))
    variables.extend((parameter("inputOrder", "", 5), parameter("eventPolicy", "", 2)))
    size = _SYSTEM.itemsize // 8
    fixed = {"causality": "parameter", "variability": "fixed", "start": " ".join(["0"] * size)}
    content = variable("Float64", "data", reference("data"), "", **fixed)
    ET.SubElement(content, "Dimension", start=str(size))
    variables.append(content)
    structure = ET.SubElement(root, "ModelStructure")
    known = {"dependencies": "", "dependenciesKind": ""}
    for k in range(STATES):
        rate = {"valueReference": str(reference("dx", k))}
        ET.SubElement(structure, "ContinuousStateDerivative", rate | known)
    for k in range(EVENTS):
        indicator = {"valueReference": str(reference("largest", k))}
        ET.SubElement(structure, "EventIndicator", indicator | known)
    return root


def _numbers() -> Iterator[ET.Element]:
    """Variables that model.c uses as arrays: those of a kind are one behind the other."""
    counts = {"u": INPUTS, "y": OUTPUTS, "x": STATES, "dx": STATES}
    counts |= {"z": EVENTS * INDICATORS, "dz": EVENTS * INDICATORS}
    counts |= {"largest": EVENTS, "when": EVENTS}
    for kind, count in counts.items():
        causality = {"u": "input", "x": "local", "dx": "local"}.get(kind, "output")
        for k in range(count):
            attributes = {"causality": causality, "variability": "continuous"}
            if kind in ("u", "x"):
                attributes["start"] = "0"
            if kind == "dx":
                attributes["derivative"] = str(reference("x", k))
            yield variable("Float64", f"{kind}_{k + 1}", reference(kind, k), "", **attributes)


def _of_event(number: int) -> Iterator[ET.Element]:
    given, name = {"causality": "input", "variability": "discrete"}, number + 1
    made = {"causality": "output", "variability": "discrete"}
    trigger = reference("in", number)
    yield variable("Clock", f"out_{name}", reference("out", number), "", **made)
    yield variable("Clock", f"in_{name}", trigger, "", **given)
    clocked = given | {"clocks": str(trigger), "start": "0"}
    yield variable("Float64", f"w_{name}", reference("w", number), "", **clocked)


def largest_manifest() -> ET.Element:
    """The events of the binary."""
    root = ET.Element("fmiLayeredStandardManifest")
    for k in range(1, EVENTS + 1):
        attributes = {
            "name": str(k),
            "scope": "private",
            "announce": f"out_{k}",
            "trigger": f"in_{k}",
        }
        event = ET.SubElement(root, "Event", attributes)
        ET.SubElement(event, "Payload", output="", input=f"w_{k}")
    return root


# Parts


def reference(kind: str, number: int = 0) -> int:
    return REFERENCES[kind] + number


def variable(tag: str, name: str, reference: int, text: str, **attributes: str) -> ET.Element:
    first = {"name": name, "valueReference": str(reference), "description": text}
    return ET.Element(tag, first | attributes)


_LOG_CATEGORIES = {
    "logEvents": "Located events",
    **{
        f"logStatus{s}": f"Messages with the status {s}"
        for s in ("Warning", "Discard", "Error", "Fatal")
    },
}


def root_element(has_states: bool) -> ET.Element:
    """A description without variables and structure."""
    attributes = {
        "fmiVersion": "3.0",
        "modelName": MODEL,
        "instantiationToken": "made by build.py",
        "description": "A system with modes, linear in each of them, and events between them",
        "license": "BSD-2-Clause",
        "variableNamingConvention": "structured",
    }
    root = ET.Element("fmiModelDescription", attributes)
    states = ("canGetAndSetFMUState", "canSerializeFMUState") if has_states else ()
    capable = dict.fromkeys(states, "true")
    ET.SubElement(root, "ModelExchange", {"modelIdentifier": MODEL, **capable})
    events = (
        "canHandleVariableCommunicationStepSize",
        "hasEventMode",
        "mightReturnEarlyFromDoStep",
    )
    capable |= dict.fromkeys(events, "true")
    ET.SubElement(root, "CoSimulation", {"modelIdentifier": MODEL, **capable})
    unit = ET.SubElement(ET.SubElement(root, "UnitDefinitions"), "Unit", name="s")
    ET.SubElement(unit, "BaseUnit", s="1")
    categories = ET.SubElement(root, "LogCategories")
    for name, text in _LOG_CATEGORIES.items():
        ET.SubElement(categories, "Category", name=name, description=text)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="10", stepSize="0.1")
    container = ET.SubElement(root, "ModelVariables")
    independent = {"causality": "independent", "variability": "continuous", "unit": "s"}
    container.append(variable("Float64", "time", 0, "Simulation time", **independent))
    return root


def polynomial(name: str, number: int) -> ET.Element:
    attributes = {"causality": "input", "variability": "continuous"}
    attributes["start"] = " ".join(["0"] * COEFFICIENTS)
    text = f"Coefficients of signal {number + 1} over a step"
    element = variable("Float64", name, reference("poly", 10 * number), text, **attributes)
    ET.SubElement(element, "Dimension", start=str(COEFFICIENTS))
    return element


def parameter(name: str, text: str, largest: int) -> ET.Element:
    attributes = {"causality": "parameter", "variability": "tunable", "start": "0", "min": "0"}
    return variable("Int32", name, reference(name), text, max=str(largest), **attributes)

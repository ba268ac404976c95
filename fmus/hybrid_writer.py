"""Reference FMUs of systems with modes: the binary of HybridLinear with another description, manifest and data.

    write_fmu(path, system, template, Variant(polynomial=False))

needs no compiler. See HybridLinear/readme.md.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from description import fmi2_description, xml_bytes
from hybrid_binary import DATA, data, parameter, polynomial, reference, root_element, variable
from hybrid_system import INDICATORS, ORDERS, Event, Form, HybridSystem

MANIFEST = "extra/org.fmimaster.fmi-ls-events/fmi-ls-manifest.xml"
"""Where in an FMU the manifest of its events is."""
POLYNOMIALS = "extra/org.fmimaster.fmi-ls-input-polynomials/fmi-ls-manifest.xml"
"""Where the manifest of its input polynomials is."""


@dataclass(frozen=True)
class Variant:
    """What an FMU has besides its system."""

    polynomial: bool = True
    """Its inputs can be polynomials; otherwise they are held."""
    states: bool = True
    """It can get and set its FMU state."""
    manifest: bool = True
    trigger: bool = True
    """Its events have triggers and announcements, and there is a policy."""


def write_fmu(
    path: Path, system: HybridSystem, template: Path, variant: Variant | None = None
) -> Path:
    """Write the FMU of a system; of the FMI version of `template`, the HybridLinear.fmu that build.py has made."""
    with zipfile.ZipFile(template) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in fmu_files(system, contents, variant or Variant()).items():
            archive.writestr(name, content)
    return path


def fmu_files(
    system: HybridSystem, template: Mapping[str, bytes], variant: Variant
) -> dict[str, bytes]:
    """The files of the FMU of a system, by those of the template."""
    files = dict(template)
    built = ET.fromstring(files["modelDescription.xml"])
    is_fmi2 = built.attrib["fmiVersion"] == "2.0"
    root = description(system, variant, is_fmi2=is_fmi2)
    root.set("instantiationToken", built.get("instantiationToken") or built.attrib["guid"])
    for name in ("generationTool", "version"):
        root.set(name, built.attrib[name])
    if is_fmi2:
        sources = [f.attrib["name"] for f in built.iterfind("CoSimulation/SourceFiles/File")]
        root = fmi2_description(root, sources, manifests(system, variant))
    files |= {
        "modelDescription.xml": xml_bytes(root),
        DATA: data(system, has_triggers=variant.trigger),
    }
    for path in (MANIFEST, POLYNOMIALS):
        files.pop(path, None)
    return files | manifests(system, variant)


# Descriptions


def description(
    system: HybridSystem, variant: Variant | None = None, *, is_fmi2: bool = False
) -> ET.Element:
    """modelDescription.xml of FMI 3.0, with the dependencies that the forms have."""
    variant = variant or Variant()
    root = root_element(variant.states)
    variables = root.find("ModelVariables")
    assert variables is not None
    variables.extend(_inputs(system, variant))
    variables.extend(_outputs(system))
    variables.extend(_states(system))
    for number in range(len(system.events)):
        variables.extend(_of_event(system, variant, number))
    if variant.polynomial:
        variables.append(parameter("inputOrder", "0 held; 5 polynomial", 5))
    if variant.trigger and system.events:
        variables.append(parameter("eventPolicy", "0 execute; 1 announce; 2 ignore", 2))
    root.append(_structure(system, variant, is_fmi2))
    return root


def _inputs(system: HybridSystem, variant: Variant) -> Iterator[ET.Element]:
    for k, signal in enumerate(system.signals):
        before: int | None = None
        for order, name in enumerate(signal.names):
            if name:
                own = reference("u", k * ORDERS + order)
                start = repr(float(system.inputs.get(name, 0.0)))
                attributes = {"causality": "input", "variability": "continuous", "start": start}
                if before is not None:
                    attributes["derivative"] = str(before)
                yield variable("Float64", name, own, f"Signal {k + 1}", **attributes)
                before = own
        if variant.polynomial:
            yield polynomial(f"{signal.value}_poly", k)


def _outputs(system: HybridSystem) -> Iterator[ET.Element]:
    of = {derivative: name for name, derivative in system.outputs.items() if derivative}
    names = list(system.outputs)
    calculated = {"causality": "output", "initial": "calculated"}
    for k, name in enumerate(names):
        attributes = calculated | {"variability": "continuous"}
        if name in of:
            attributes["derivative"] = str(reference("y", names.index(of[name])))
        yield variable("Float64", name, reference("y", k), f"Output {k + 1}", **attributes)
    discrete = {"causality": "output", "variability": "discrete"}
    on = discrete | {"initial": "calculated"}
    yield variable("Boolean", "on", reference("on"), "A property of the mode", **on)
    mode = discrete | {"initial": "exact", "start": str(system.start_mode)}
    yield variable("Int32", "mode", reference("mode"), "Number of the mode", **mode)


def _states(system: HybridSystem) -> Iterator[ET.Element]:
    for k, (name, start) in enumerate(system.states.items()):
        attributes = {"causality": "local", "variability": "continuous", "initial": "exact"}
        attributes["start"] = repr(float(start))
        yield variable(
            "Float64", f"state.{name}", reference("x", k), f"State {k + 1}", **attributes
        )
    for k, name in enumerate(system.states):
        attributes = {"causality": "local", "variability": "continuous", "initial": "calculated"}
        attributes["derivative"] = str(reference("x", k))
        text = f"Time derivative of state {k + 1}"
        yield variable("Float64", f"der(state.{name})", reference("dx", k), text, **attributes)


def _of_event(system: HybridSystem, variant: Variant, number: int) -> Iterator[ET.Element]:
    event = system.events[number]
    calculated = {"causality": "output", "variability": "continuous", "initial": "calculated"}
    for k in range(_count(event)):
        z = reference("z", number * INDICATORS + k)
        yield variable("Float64", f"{event.name}.z[{k + 1}]", z, "Indicator", **calculated)
        dz, rate = reference("dz", number * INDICATORS + k), calculated | {"derivative": str(z)}
        yield variable("Float64", f"{event.name}.dz[{k + 1}]", dz, "Its derivative", **rate)
    largest = calculated | {"causality": "local"}
    text = "Largest indicator"
    yield variable("Float64", f"{event.name}.z", reference("largest", number), text, **largest)
    exact = {"causality": "output", "variability": "discrete", "initial": "exact", "start": "0"}
    text = "How often it has been executed"
    yield variable("Int32", f"{event.name}.count", reference("count", number), text, **exact)
    text = "When it was executed last"
    yield variable("Float64", f"{event.name}.when", reference("when", number), text, **exact)
    if variant.trigger:
        clock = {"variability": "discrete", "intervalVariability": "triggered"}
        out, trigger = reference("out", number), reference("in", number)
        yield variable(
            "Clock", f"{event.name}.out", out, "It has occurred", causality="output", **clock
        )
        yield variable(
            "Clock", f"{event.name}.in", trigger, "Lets it happen", causality="input", **clock
        )
        if event.payload:
            discrete = {"causality": "input", "variability": "discrete", "start": "0"}
            w, text = reference("w", number), "Left limit of the other member"
            yield variable("Float64", f"{event.name}.w", w, text, clocks=str(trigger), **discrete)


def _count(event: Event) -> int:
    """How many indicators it has in any mode."""
    return max(len(t.indicators) for t in event.transitions.values())


# Dependencies


def _structure(system: HybridSystem, variant: Variant, is_fmi2: bool) -> ET.Element:
    structure = ET.Element("ModelStructure")
    outputs = _output_dependencies(system, variant)
    indicators = {
        reference("largest", k): sorted(
            set().union(*(outputs[reference("z", k * INDICATORS + i)] for i in range(_count(e))))
        )
        for k, e in enumerate(system.events)
    }
    rates = {
        reference("dx", k): _known(system, variant, (m.rates.get(name, {}) for m in system.modes))
        for k, name in enumerate(system.states)
    }
    exact = _exact(system)
    initial = {r: known for r, known in (outputs | rates).items() if r not in exact}
    if is_fmi2:  # outputs are right limits as soon as a counter is set
        outputs = {r: known + _causes(system, variant) for r, known in outputs.items()}
    if variant.trigger:
        clocks = {reference("out", k): known for k, known in enumerate(indicators.values())}
        outputs, initial = outputs | clocks, initial | {clock: [] for clock in clocks}
    for tag, unknowns in (
        ("Output", outputs),
        ("ContinuousStateDerivative", rates),
        ("InitialUnknown", initial),
        ("EventIndicator", indicators),
    ):
        for unknown, known in unknowns.items():
            attributes = {"valueReference": str(unknown)}
            attributes["dependencies"] = " ".join(map(str, known))
            attributes["dependenciesKind"] = " ".join(["dependent"] * len(known))
            ET.SubElement(structure, tag, attributes)
    return structure


def _causes(system: HybridSystem, variant: Variant) -> list[int]:
    """What lets events happen."""
    if not variant.trigger:
        return []
    payloads = [reference("w", k) for k, event in enumerate(system.events) if event.payload]
    return [reference("in", k) for k in range(len(system.events))] + payloads


def _exact(system: HybridSystem) -> set[int]:
    """Outputs with start values."""
    of_events = {
        reference(what, k) for what in ("count", "when") for k in range(len(system.events))
    }
    return {reference("mode"), *of_events}


def _output_dependencies(system: HybridSystem, variant: Variant) -> dict[int, list[int]]:
    found = {
        reference("y", k): _known(system, variant, (m.outputs.get(name, {}) for m in system.modes))
        for k, name in enumerate(system.outputs)
    }
    found |= {reference("on"): [], reference("mode"): []}
    for number, event in enumerate(system.events):
        for k in range(_count(event)):
            forms = [
                (m, t.indicators[k]) for m, t in event.transitions.items() if k < len(t.indicators)
            ]
            z, dz = (reference(what, number * INDICATORS + k) for what in ("z", "dz"))
            found[z] = _known(system, variant, (form for _, form in forms))
            found[dz] = _known(system, variant, (_rate(system, m, form) for m, form in forms))
        found |= {reference(what, number): [] for what in ("count", "when")}
    return found


def _rate(system: HybridSystem, mode: int, form: Form) -> dict[str, float]:
    """What the time derivative of a form depends on."""
    rate: dict[str, float] = {}
    inputs = system.input_names
    for name in form:
        if name in system.states:
            rate |= dict(system.modes[mode].rates.get(name, {}))
        elif name != "1" and inputs.index(name) % ORDERS < ORDERS - 1:
            rate[inputs[inputs.index(name) + 1]] = 1.0
    return rate


def _known(system: HybridSystem, variant: Variant, forms: Iterable[Form]) -> list[int]:
    """Value references of what any of the forms depends on."""
    states, inputs = list(system.states), list(system.input_names)
    known: set[int] = set()
    for name in {name for form in forms for name, factor in form.items() if factor and name != "1"}:
        if name in states:
            known.add(reference("x", states.index(name)))
        elif name:
            known.add(reference("u", inputs.index(name)))
            if variant.polynomial:
                known.add(reference("poly", 10 * (inputs.index(name) // ORDERS)))
    return sorted(known)


# Manifest


def manifests(system: HybridSystem, variant: Variant | None = None) -> dict[str, bytes]:
    """The manifests of events and of input polynomials, by their places in the FMU."""
    variant = variant or Variant()
    if not variant.manifest:
        return {}
    found = {MANIFEST: xml_bytes(_of_events(system, variant))}
    if variant.polynomial and system.signals:
        found[POLYNOMIALS] = xml_bytes(_of_polynomials(system))
    return found


def _root(name: str, text: str) -> ET.Element:
    prefix = "{http://fmi-standard.org/fmi-ls-manifest}"
    ET.register_namespace("fmi-ls", prefix[1:-1])
    root = ET.Element("fmiLayeredStandardManifest")
    for attribute, value in (("name", name), ("version", "0.3.0"), ("description", text)):
        root.set(f"{prefix}fmi-ls-{attribute}", value)
    return root


def _scope(system: HybridSystem, event: Event) -> str:
    """Coupled, if the indicators of an event that is not shared depend on inputs."""
    if event.shared:
        return "shared"
    forms = [form for t in event.transitions.values() for form in t.indicators]
    names = {name for form in forms for name, factor in form.items() if factor}
    return "private" if names.isdisjoint(system.input_names) else "coupled"


def _of_events(system: HybridSystem, variant: Variant) -> ET.Element:
    text = "Event indicator sets, shared events, look-ahead"
    root = _root("org.fmimaster.fmi-ls-events", text)
    for event in system.events:
        element = ET.SubElement(root, "Event", name=event.name)
        element.set("scope", _scope(system, event))
        if variant.trigger:
            element.set("announce", f"{event.name}.out")
            element.set("trigger", f"{event.name}.in")
            element.set("rightLimitsWithoutStep", "true")
        for k in range(1, _count(event) + 1):
            attributes = {"name": f"{event.name}.z[{k}]", "derivative": f"{event.name}.dz[{k}]"}
            ET.SubElement(element, "Indicator", attributes)
        if event.payload and variant.trigger:
            ET.SubElement(element, "Payload", output=event.payload[0], input=f"{event.name}.w")
    if variant.trigger and system.events:
        values = {"parameter": "eventPolicy", "execute": "0", "announce": "1", "ignore": "2"}
        ET.SubElement(root, "Policy", values)
    return root


def _of_polynomials(system: HybridSystem) -> ET.Element:
    text = "Inputs as polynomials over a communication step"
    root = _root("org.fmimaster.fmi-ls-input-polynomials", text)
    for signal in system.signals:
        attributes = {"input": signal.value, "coefficients": f"{signal.value}_poly"}
        if signal.first:
            attributes["derivative"] = signal.first
        ET.SubElement(root, "InputPolynomial", attributes, parameter="inputOrder", value="5")
    return root

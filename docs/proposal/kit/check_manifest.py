"""Check the manifests of an FMU against their schemas and the model description: requirements M. Needs FMPy (with lxml).

The schemas import those of FMI 3.0, which come with FMPy, so nothing is fetched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fmpy
from fmpy.validation import validate_fmu
from fmu_under_test import EVENTS, LEVEL, POLYNOMIALS, Event, Fmu
from lxml import etree
from report import Report

HERE = Path(__file__).resolve().parent
OFFICIAL = "https://raw.githubusercontent.com/modelica/fmi-standard/v3.0.2/schema/"
OF_FMPY = Path(fmpy.__file__).parent / "schema" / "fmi3"
FLOATS = ("Real", "Float64")
COUNTERS = ("Integer", "Int32")
INTEGERS = (
    *COUNTERS,
    "Int8",
    "Int16",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Enumeration",
)


class _FromFmpy(etree.Resolver):
    def resolve(self, url: str, *rest: Any) -> Any:
        found: Any = self
        if url.startswith(OFFICIAL):
            return found.resolve_filename(str(OF_FMPY / url.removeprefix(OFFICIAL)), rest[-1])
        return None


def _file(name: str) -> Path:
    [file] = [f for f in (HERE / "schema" / name, HERE.parent / "schema" / name) if f.is_file()][:1]
    return file


def _schema(name: str) -> Any:
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_FromFmpy())
    return etree.XMLSchema(etree.parse(str(_file(name)), parser))


def _without_unknown(root: Any, schema_name: str) -> None:
    """Remove elements and attributes without namespace that a schema does not name, as an importer ignores them."""
    known = set(re.findall(r'name="(\w+)"', _file(schema_name).read_text(encoding="utf-8")))
    known |= {"Annotations", "Annotation", "type"}
    for element in list(root.iter("*")):
        if element is not root and "{" not in element.tag and element.tag not in known:
            element.getparent().remove(element)
        for name in [n for n in element.attrib if "{" not in n and n not in known]:
            del element.attrib[name]


def check(fmu: Fmu, report: Report) -> None:
    """All requirements of the manifests that need no simulation, and F17 as far as FMPy validates FMUs."""
    names = {
        "M1": (EVENTS, "fmi3LayeredStandardEventsManifest.xsd"),
        "M16": (POLYNOMIALS, "fmi3LayeredStandardInputPolynomialsManifest.xsd"),
    }
    for requirement, (standard, schema_name) in names.items():
        file = fmu.manifest_file(standard)
        if not file.is_file():
            if requirement == "M1":
                report.judge(
                    "M1", bool(fmu.polynomials), f"there is no extra/{standard}/fmi-ls-manifest.xml"
                )
            continue
        schema, document = _schema(schema_name), etree.parse(str(file))
        if fmu.is_later:
            why = f"version {fmu.version} is later than that of this checker: what it does not know is left out"
            report.skip(requirement, why)
            _without_unknown(document.getroot(), schema_name)
        is_valid = schema.validate(document)
        told = "; ".join(f"line {e.line}: {e.message}" for e in schema.error_log)
        report.judge(requirement, is_valid, told)
        root = etree.parse(str(file)).getroot()
        told = f"fmi-ls-name is '{root.get(f'{LEVEL}fmi-ls-name')}', expected {standard}"
        report.judge(requirement, root.get(f"{LEVEL}fmi-ls-name") == standard, told)
        version = root.get(f"{LEVEL}fmi-ls-version") or ""
        told = f"fmi-ls-version is '{version}', expected 0.minor.patch"
        report.judge(requirement, bool(re.fullmatch(r"0\.\d+\.\d+([-+].*)?", version)), told)
    if report.broken:
        return
    for event in fmu.events:
        _event(fmu, event, report)
    _others(fmu, report)
    problems = validate_fmu(str(fmu.path))
    told = "; ".join(map(str, problems))
    report.judge("F17", not problems, f"FMPy finds the FMU not valid: {told}")


def _role(
    fmu: Fmu, report: Report, what: str, name: str, types: tuple[str, ...], causalities: tuple[str, ...],
    continuous: bool = False, requirement: str = "M3",
) -> None:  # fmt: skip
    """Whether a name is that of a variable with this type and causality."""
    v = fmu.variables.get(name)
    if v is None:
        report.fail(requirement, f"{what}: there is no variable '{name}'")
        return
    is_right = (not types or v.type in types) and v.causality in causalities
    is_right = is_right and (not continuous or v.variability == "continuous")
    kind = f"{'continuous ' if continuous else ''}{' or '.join(types)} {' or '.join(causalities)}"
    told = f"{what}: '{name}' is a {v.variability} {v.type} {v.causality}, expected: {kind}"
    report.judge(requirement, is_right, told)


def _event(fmu: Fmu, event: Event, report: Report) -> None:
    what = f"event '{event.name}'"
    for z, dz in zip(event.indicators, event.derivatives, strict=True):
        for name in filter(None, (z, dz)):
            _role(fmu, report, what, name, FLOATS, ("output", "local"), continuous=True)
    signals = COUNTERS if not fmu.is_fmi3 else (*COUNTERS, "Clock")
    for name, causality in ((event.trigger, "input"), (event.announce, "output")):
        if name is None:
            continue
        _role(fmu, report, what, name, signals, (causality,))
        v = fmu.variables.get(name)
        if v is not None and v.type == "Clock":
            told = f"{what}: the Clock '{name}' is {v.intervalVariability}, expected triggered"
            report.judge("M3", v.intervalVariability == "triggered", told)
    if event.active:
        _role(fmu, report, what, event.active, ("Boolean",), ("output", "local"))
    for output, given in event.payload:
        _role(fmu, report, f"{what}: payload", output, (), ("output",))
        _role(fmu, report, f"{what}: payload", given, (), ("input",))
    _shared(fmu, event, report)
    _dependencies(fmu, event, report)


def _shared(fmu: Fmu, event: Event, report: Report) -> None:
    """M8 and M15: payloads and contacts."""
    what = f"event '{event.name}'"
    if event.payload or event.contact:
        told = f"{what} is {event.scope} and has a payload or a contact"
        report.judge("M8", event.scope == "shared", told)
    discrete = [name for _, name in event.payload] + (
        [event.contact["impulse"]] if event.contact else []
    )
    for name in discrete:
        v = fmu.variables.get(name)
        if v is None or not fmu.is_fmi3:
            continue
        report.judge(
            "M8", v.variability != "continuous", f"{what}: the payload input '{name}' is continuous"
        )
        clocks = [fmu_v.name for fmu_v in fmu.variables.values() if v.clocks and fmu_v in v.clocks]
        told = (
            f"{what}: the payload input '{name}' has the Clock {', '.join(clocks)}, not the trigger"
        )
        report.judge("M8", not clocks or event.trigger in clocks, told)
    c = event.contact
    if c is None:
        return
    told = f"{what} has a contact. Expected two indicators with derivatives: the gap and its time derivative"
    report.judge("M15", len(event.indicators) == 2 and all(event.derivatives), told)
    _role(fmu, report, f"{what}: contact", c["velocity"], FLOATS, ("output",))
    _role(
        fmu,
        report,
        f"{what}: contact",
        c["inverseMass"],
        FLOATS,
        ("output", "parameter", "calculatedParameter"),
    )
    _role(
        fmu,
        report,
        f"{what}: contact",
        c["restitution"],
        FLOATS,
        ("parameter", "calculatedParameter"),
    )
    _role(fmu, report, f"{what}: contact", c["impulse"], FLOATS, ("input",))
    _role(fmu, report, f"{what}: contact", c["force"], FLOATS, ("input",), continuous=True)
    if "parameter" in c:
        _role(fmu, report, f"{what}: contact", c["parameter"], INTEGERS, ("parameter",))


def _dependencies(fmu: Fmu, event: Event, report: Report) -> None:
    """M14: which inputs an indicator depends on; M10 where right limits are promised and nothing depends on a trigger."""
    what = f"event '{event.name}'"
    is_input = {v.name for v in fmu.variables.values() if v.causality == "input"}
    for z in event.indicators:
        v = fmu.variables.get(z)
        if v is None:
            continue
        if event.scope == "coupled":
            told = f"{what} is coupled, and its indicator '{z}' is no output: nobody knows on which inputs it depends"
            report.judge("M14", v.causality == "output", told)
        if v.causality != "output" or event.scope == "shared":
            continue
        listed = fmu.dependencies(z)
        signals = {s for e in fmu.events for s in (e.trigger, *(name for _, name in e.payload))}
        inputs = (
            None if listed is None else [n for n in listed if n in is_input and n not in signals]
        )
        if event.scope == "private":
            told = f"{what} is private, but its indicator '{z}' depends on {', '.join(inputs or ['all inputs'])}"
            report.judge("M14", not is_input or (inputs is not None and not inputs), told)
        elif event.scope == "coupled":
            report.judge(
                "M14", inputs is not None, f"{what}: the dependencies of '{z}' are not listed"
            )
    trigger = fmu.variables.get(event.trigger or "")
    if trigger is None or not event.without_step or trigger.type == "Clock":
        return
    outputs = fmu.outputs
    depends = any(d is None or event.trigger in d for d in map(fmu.dependencies, outputs))
    told = f"{what} has right limits without a step, but no output lists the trigger '{event.trigger}' as a dependency"
    report.judge("M10", depends, told)


def _others(fmu: Fmu, report: Report) -> None:
    if fmu.policy:
        name = fmu.policy["parameter"]
        _role(fmu, report, "Policy", name, INTEGERS, ("parameter",))
        values = [fmu.policy[k] for k in ("execute", "announce", "ignore") if k in fmu.policy]
        report.judge(
            "M11",
            len({int(v) for v in values}) == len(values),
            f"the values {', '.join(values)} of the Policy do not differ",
        )
        v = fmu.variables.get(name)
        if v is not None:
            told = f"'{name}' starts at {v.start}, but execute is {fmu.policy['execute']}"
            report.judge("M11", str(v.start) == fmu.policy["execute"].strip(), told)
    if fmu.look_ahead:
        _role(fmu, report, "LookAhead", fmu.look_ahead, FLOATS, ("output",))
    for p in fmu.polynomials:
        what = f"InputPolynomial of '{p['input']}'"
        _role(fmu, report, what, p["input"], FLOATS, ("input",), continuous=True, requirement="M16")
        stem = p["coefficients"]
        first = stem if stem in fmu.variables else f"{stem}[0]"
        _role(fmu, report, what, first, FLOATS, ("input",), requirement="M16")
        if "parameter" in p:
            _role(fmu, report, what, p["parameter"], INTEGERS, ("parameter",), requirement="M16")

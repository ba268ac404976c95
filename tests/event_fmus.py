"""FMUs without a binary, for what is read of them: the upper of the two masses with its events, in FMI 2.0 and 3.0."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

EXTRA = "extra/org.fmimaster.fmi-ls-events/fmi-ls-manifest.xml"
ATTRIBUTES = (
    'xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest" fmi-ls:fmi-ls-name="org.fmimaster.fmi-ls-events" '
    'fmi-ls:fmi-ls-version="0.2.0" fmi-ls:fmi-ls-description="Event indicator sets, shared events, look-ahead"'
)

VARIABLES = """
u_x            Float64 input     continuous start=-8.8
u_v            Float64 input     continuous start=3.0
x              Float64 output    continuous
v              Float64 output    continuous derivative=x
x_rounded      Float64 output    discrete
force          Float64 local     continuous
eventPolicy    Int32   parameter tunable    start=0
inputOrder     Int32   parameter fixed      start=1
ceiling.z[1]   Float64 output    continuous
ceiling.z[2]   Float64 output    continuous
collision.z[1] Float64 output    continuous
collision.z[2] Float64 output    continuous
collision.dz[1] Float64 output   continuous derivative=collision.z[1]
collision.dz[2] Float64 output   continuous derivative=collision.z[2]
ceiling.out    Clock   output    discrete
ceiling.in     Clock   input     discrete   start=0
collision.out  Clock   output    discrete
collision.in   Clock   input     discrete   start=0
collision.w    Float64 input     discrete   start=0
collision.n    Int32   input     discrete   start=0
lookahead.next Float64 output    continuous
u_poly[0]      Float64 input     continuous start=0
u_poly[1]      Float64 input     continuous start=0
u_poly[2]      Float64 input     continuous start=0
"""
"""Name, type, causality, variability, more attributes. A Clock is an Integer in FMI 2.0."""

EVENTS = """
  <Event name="ceiling" scope="private" announce="ceiling.out">
    <Indicator name="ceiling.z[1]"/>
    <Indicator name="ceiling.z[2]"/>
  </Event>
  <Event name="collision" scope="shared" announce="collision.out" trigger="collision.in" rightLimitsWithoutStep="true">
    <Indicator name="collision.z[1]" derivative="collision.dz[1]"/>
    <Indicator name="collision.z[2]" derivative="collision.dz[2]"/>
    <Payload output="v" input="collision.w"/>
  </Event>
  <Policy parameter="eventPolicy" execute="0" announce="1" ignore="2"/>
  <LookAhead next="lookahead.next"/>
  <InputPolynomial input="u_x" derivative="u_v" coefficients="u_poly" parameter="inputOrder" value="5"/>
"""
"""What the manifest of the upper mass says."""


def manifest(inside: str = EVENTS, attributes: str = ATTRIBUTES) -> bytes:
    """A manifest as a file; its content begins in line 3."""
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<fmiLayeredStandardManifest {attributes}>'
    return f"{head}\n{inside.strip()}\n</fmiLayeredStandardManifest>\n".encode()


def event_fmu(
    path: Path,
    inside: str | None = EVENTS,
    *,
    version: str = "3.0",
    variables: str = VARIABLES,
    structure: str = "",
    members: Mapping[str, bytes] | None = None,
) -> Path:
    """Write such an FMU.

    Parameters
    ----------
    inside
        Content of its manifest; None for no manifest.
    variables
        As :data:`VARIABLES`.
    structure
        What stands in the ModelStructure after the outputs, FMI 3.0.
    members
        More members of the archive.
    """
    rows = [line.split() for line in variables.splitlines() if line.strip()]
    describe = _fmi2 if version.startswith("2") else _fmi3
    contents = {"modelDescription.xml": describe(rows, version, structure).encode()}
    if inside is not None:
        contents[EXTRA] = manifest(inside)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (contents | dict(members or {})).items():
            archive.writestr(name, content)
    return path


def event_system(
    folder: Path, annotations: str = "", nested: str = "", components: str = "upper lower"
) -> Path:
    """A system of event FMUs, as an SSD; nested systems stand in its Elements, annotations begin in line 7."""
    if not (folder / "a.fmu").exists():
        event_fmu(folder / "a.fmu")
    inside = "".join(f'<ssd:Component name="{c}" source="a.fmu"/>' for c in components.split())
    path = folder / "system.ssd"
    path.write_text(
        f"""<ssd:SystemStructureDescription version="1.0" name="test"
xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssd:System name="root">
<ssd:Elements>{inside}{nested}</ssd:Elements>
<ssd:Annotations>
{annotations}
</ssd:Annotations></ssd:System>
<ssd:DefaultExperiment startTime="0" stopTime="1"/></ssd:SystemStructureDescription>""",
        encoding="utf-8",
    )
    return path


def _fmi3(rows: list[list[str]], version: str, structure: str) -> str:
    number = {row[0]: k for k, row in enumerate(rows, 1)}
    variables, outputs = [], []
    for name, kind, causality, variability, *more in rows:
        given = dict(m.split("=", 1) for m in more)
        if "derivative" in given:
            given["derivative"] = str(number[given["derivative"]])
        if kind == "Clock":
            given.pop("start", None)
            given = {"intervalVariability": "triggered"} | given
        if "clocks" in given:
            given["clocks"] = str(number[given["clocks"]])
        dimension = f'<Dimension start="{size}"/>' if (size := given.pop("size", None)) else ""
        attributes = "".join(f' {key}="{value}"' for key, value in given.items())
        variables.append(
            f'<{kind} name="{name}" valueReference="{number[name]}" causality="{causality}" '
            f'variability="{variability}"{attributes}>{dimension}</{kind}>'
        )
        if causality == "output":
            outputs.append(f'<Output valueReference="{number[name]}" dependencies=""/>')
    for name, k in number.items():
        structure = structure.replace(f"'{name}'", f'"{k}"')
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="{version}" modelName="Upper" instantiationToken="token">
<CoSimulation modelIdentifier="Upper" canHandleVariableCommunicationStepSize="true" hasEventMode="true"/>
<ModelVariables>
<Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
{chr(10).join(variables)}
</ModelVariables>
<ModelStructure>{"".join(outputs)}{structure}</ModelStructure>
</fmiModelDescription>"""


def _fmi2(rows: list[list[str]], version: str, structure: str) -> str:
    types = {"Float64": "Real", "Int32": "Integer", "Clock": "Integer", "Boolean": "Boolean"}
    number = {row[0]: k for k, row in enumerate(rows, 1)}
    variables, outputs = [], []
    for name, kind, causality, variability, *more in rows:
        given = dict(m.split("=", 1) for m in more)
        if "derivative" in given:
            given["derivative"] = str(number[given["derivative"]])
        attributes = "".join(f' {key}="{value}"' for key, value in given.items())
        variables.append(
            f'<ScalarVariable name="{name}" valueReference="{number[name]}" causality="{causality}" '
            f'variability="{variability}"><{types[kind]}{attributes}/></ScalarVariable>'
        )
        if causality == "output":
            outputs.append(f'<Unknown index="{number[name]}" dependencies=""/>')
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="{version}" modelName="Upper" guid="token">
<CoSimulation modelIdentifier="Upper" canHandleVariableCommunicationStepSize="true"/>
<ModelVariables>
{chr(10).join(variables)}
</ModelVariables>
<ModelStructure><Outputs>{"".join(outputs)}</Outputs></ModelStructure>
</fmiModelDescription>"""

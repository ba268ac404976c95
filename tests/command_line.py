"""The command line as tests use it, and files that are made for it: systems as text, FMUs with something changed."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from fmimaster.base.errors import FileError
from fmimaster.base.installation import reference_path
from fmimaster.commands.cli import main

PLAIN = ("--algorithm", "jacobi", "--event-clock", "none")
"""The plain run: held inputs, and no event clock."""


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The message of a command that failed, and nothing but it: no traceback."""
        assert self.status == 2, (self.status, self.err)
        assert "Traceback" not in self.err
        before, mark, message = self.err.rpartition("fmimaster: error: ")
        assert mark, before
        return message


WIDE = 1000
"""Columns of a page in which no line is wrapped, so that a test finds whole lines."""


def command(capfd: pytest.CaptureFixture[str], *arguments: object, columns: int = WIDE) -> Outcome:
    """Run a command in this process, for a terminal with so many columns."""
    capfd.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as leave:
            status = int(leave.code or 0)
    return Outcome(status, *capfd.readouterr())


def reference(name: str) -> Path:
    """A reference FMU or system; the test is skipped if they have not been built."""
    try:
        return reference_path(name)
    except FileError as error:
        pytest.skip(str(error))


def changed(
    source: Path,
    target: Path,
    *,
    description: Callable[[str], str] = str,
    name: Callable[[str], str] = str,
    members: Mapping[str, bytes] | None = None,
) -> Path:
    """A copy of an FMU with another modelDescription.xml, other member names, other members.

    Parameters
    ----------
    description
        The text of modelDescription.xml → what it shall be.
    name
        Each member name → what it shall be; empty to leave it out.
    members
        Member name → content that stands in for, or is added to, what is there.
    """
    contents = {}
    with zipfile.ZipFile(source) as archive:
        for info in archive.infolist():
            contents[name(info.filename)] = archive.read(info)
    if "modelDescription.xml" in contents:
        text = contents["modelDescription.xml"].decode()
        contents["modelDescription.xml"] = description(text).encode()
    contents.update(members or {})
    contents.pop("", None)
    with zipfile.ZipFile(target, "w") as archive:
        for member, content in contents.items():
            archive.writestr(member, content)
    return target


def large_fmu(path: Path, size: int, name: str = "v{}", convention: str = "structured") -> Path:
    """An FMU of FMI 2.0 without a binary: inputs, outputs, parameters and locals in turn, and nothing wrong with it."""
    variables = []
    for k in range(size):
        causality, rest, start = (
            ("input", 'variability="continuous"', ' start="1"'),
            ("output", 'variability="continuous" initial="calculated"', ""),
            ("parameter", 'variability="fixed" initial="exact"', ' start="1"'),
            ("local", 'variability="continuous" initial="calculated"', ""),
        )[k % 4]
        variables.append(
            f'<ScalarVariable name="{name.format(k)}" valueReference="{k}" causality="{causality}" {rest}>'
            f"<Real{start}/></ScalarVariable>"
        )
    unknowns = "".join(
        f'<Unknown index="{k}" dependencies="{k - 1}"/>' for k in range(2, size + 1, 4)
    )
    description = f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="large" guid="1" variableNamingConvention="{convention}">
  <CoSimulation modelIdentifier="large" canHandleVariableCommunicationStepSize="true"/>
  <DefaultExperiment startTime="0" stopTime="1"/>
  <ModelVariables>{"".join(variables)}</ModelVariables>
  <ModelStructure>
    <Outputs>{unknowns}</Outputs><InitialUnknowns>{unknowns}</InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>"""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", description)
    return path


def declared_fmu(
    path: Path,
    inputs: Iterable[str],
    outputs: Mapping[str, Iterable[str] | None],
    capabilities: str = 'canGetAndSetFMUstate="true"',
) -> Path:
    """An FMU of FMI 2.0 without a binary, for the plan: inputs and outputs, and on what these depend.

    Parameters
    ----------
    outputs
        Output → the inputs on which it depends directly; None if the FMU does not declare it.
    capabilities
        Attributes of its CoSimulation element.
    """
    inputs, kind = list(inputs), 'variability="continuous"'
    variables = [
        f'<ScalarVariable name="{name}" valueReference="{k}" causality="input" {kind}><Real start="0"/></ScalarVariable>'
        for k, name in enumerate(inputs)
    ]
    unknowns = []
    for name, needed in outputs.items():
        variables.append(
            f'<ScalarVariable name="{name}" valueReference="{len(variables)}" causality="output" {kind}>'
            "<Real/></ScalarVariable>"
        )
        on = "" if needed is None else " ".join(str(inputs.index(i) + 1) for i in needed)
        declared = "" if needed is None else f' dependencies="{on}"'
        unknowns.append(f'<Unknown index="{len(variables)}"{declared}/>')
    entries = "".join(unknowns)
    description = f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="{path.stem}" guid="1">
  <CoSimulation modelIdentifier="{path.stem}" canHandleVariableCommunicationStepSize="true" {capabilities}/>
  <ModelVariables>{"".join(variables)}</ModelVariables>
  <ModelStructure><Outputs>{entries}</Outputs><InitialUnknowns>{entries}</InitialUnknowns></ModelStructure>
</fmiModelDescription>"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", description)
    return path


def system(
    folder: Path,
    components: Mapping[str, Path],
    connections: Iterable[str] = (),
    *,
    parameters: str = "",
    stop_time: str = "1",
) -> Path:
    """A system as a file ``system.ssd`` beside copies of its FMUs.

    Parameters
    ----------
    connections
        ``"a.y -> b.u"``.
    parameters
        What stands in the root system's ParameterBindings.
    """
    folder.mkdir(exist_ok=True)
    elements = []
    for name, fmu in components.items():
        file = f"{fmu.parent.name}-{fmu.name}"
        if not (folder / file).exists():
            shutil.copy(fmu, folder / file)
        elements.append(f'<ssd:Component name="{name}" source="{file}"/>')
    routes = []
    for connection in connections:
        start, _, end = connection.partition(" -> ")
        a, b = (e.partition(".") for e in (start, end))
        ends = f'startElement="{a[0]}" startConnector="{a[2]}" endElement="{b[0]}" endConnector="{b[2]}"'
        routes.append(f"<ssd:Connection {ends}/>")
    path = folder / "system.ssd"
    path.write_text(
        f"""<?xml version="1.0"?>
<ssd:SystemStructureDescription version="1.0" name="test"
    xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
    xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
    xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <ssd:System name="test">
    {parameters}
    <ssd:Elements>{"".join(elements)}</ssd:Elements>
    <ssd:Connections>{"".join(routes)}</ssd:Connections>
  </ssd:System>
  <ssd:DefaultExperiment startTime="0" stopTime="{stop_time}"/>
</ssd:SystemStructureDescription>
""",
        encoding="utf-8",
    )
    return path

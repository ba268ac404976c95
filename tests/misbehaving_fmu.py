"""FMUs in C that misbehave as they are told: in which call, from which time on, and how.

    path = misbehaving(folder, "fmi3", Act("DoStep", "return", 5, since=0.5), Act("Terminate", "hang"))

The FMU is x' = -k x + u with output ``x``, input ``u``, an input ``w`` without effect, parameter ``k`` and the number of
steps ``n``. ``misbehaving.c`` lists the calls and the actions. The acts lie in the FMU as a file, so that also loading and
instantiating can be tested.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path

import fmpy
import pytest

SOURCE = Path(__file__).parent / "misbehaving" / "misbehaving.c"
FLAGS = (
    *("-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-pthread"),
)
LIBRARIES = ("-lm",) if sys.platform == "win32" else ("-lm", "-ldl")

VERSIONS = ("fmi2", "fmi3")

CALLS = {
    # in the order of a run that saves and restores
    "fmi2": (
        *("Instantiate", "Set", "SetupExperiment", "EnterInitializationMode", "Get"),
        *("ExitInitializationMode", "GetState", "DoStep", "SetState", "Terminate", "FreeState"),
        "FreeInstance",
    ),
    "fmi3": (
        *("Instantiate", "Set", "EnterInitializationMode", "Get", "ExitInitializationMode"),
        *("GetState", "DoStep", "SetState", "Terminate", "FreeState", "FreeInstance"),
    ),
}

EXCHANGE_CALLS = {
    # of Model Exchange, in this order, beside those above without DoStep and SetupExperiment
    "fmi2": (
        *("SetTime", "GetContinuousStates", "GetNominalsOfContinuousStates", "SetContinuousStates"),
        *("GetDerivatives", "CompletedIntegratorStep", "EnterEventMode", "NewDiscreteStates"),
        "EnterContinuousTimeMode",
    ),
    "fmi3": (
        *("SetTime", "GetContinuousStates", "GetNominalsOfContinuousStates", "SetContinuousStates"),
        *("GetContinuousStateDerivatives", "CompletedIntegratorStep", "EnterEventMode"),
        *("UpdateDiscreteStates", "EnterContinuousTimeMode"),
    ),
}


@dataclass(frozen=True)
class Act:
    """One thing that an FMU does in each call of this name, from a time in s on; -inf is before Instantiate."""

    call: str
    action: str
    argument: object = ""
    since: float = -inf

    @property
    def line(self) -> str:
        """As ``misbehaving.c`` reads it."""
        if isinstance(self.argument, bytes):
            text = "".join(f"\\x{b:02x}" for b in self.argument)
            return f"{self.call} {self.action} {self.since!r} {text}"
        text = "".join(
            c if c.isprintable() and c != "\\" else "".join(f"\\x{b:02x}" for b in c.encode())
            for c in str(self.argument)
        )
        return f"{self.call} {self.action} {self.since!r} {text}"


def misbehaving(
    folder: Path,
    version: str,
    *acts: Act,
    name: str = "Misbehaving",
    lacks: Collection[str] = (),
    trace: Path | None = None,
    files: Mapping[str, bytes] | None = None,
    interface: str = "CoSimulation",
    **capabilities: str,
) -> Path:
    """Make such an FMU in a folder.

    Parameters
    ----------
    version : str
        "fmi2" or "fmi3".
    lacks
        Functions, without prefix, that its library does not have.
    trace
        A file to which it adds a line for each call: name of the instance, name of the call.
    files
        More files in the archive.
    interface
        "CoSimulation" or "ModelExchange".
    capabilities
        More attributes of the interface.
    """
    lines = [act.line for act in acts]
    if trace is not None:
        lines.append(Act("-", "trace", trace).line)
    platform = fmpy.platform if version == "fmi2" else fmpy.platform_tuple
    contents = {
        "modelDescription.xml": _description(version, interface, capabilities).encode(),
        f"binaries/{platform}/Misbehaving{fmpy.sharedLibraryExtension}": _library(
            version, tuple(sorted(lacks))
        ),
        "extra/acts.txt": ("\n".join(lines) + "\n").encode(),
        **(files or {}),
    }
    path = folder / f"{name}.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in contents.items():
            archive.writestr(file, content)
    return path


@cache
def _library(version: str, lacks: tuple[str, ...]) -> bytes:
    """What it lacks has another name, with one letter changed in the compiled file: linking again is quick."""
    compiled = _compiled(version)
    for function in lacks:
        name = f"{version}{function}".encode()
        # between zeros, and on Windows also in the options of the linker: -export:fmi2Reset
        pattern = rb'(?<=[\0:"])(_?)%b(?!\w)' % name
        compiled, count = re.subn(pattern, rb"\1F%b" % name[1:], compiled)
        assert count in (1, 2), name
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "compiled.o"), Path(folder, "library")
        source.write_bytes(compiled)
        command = [_compiler(), "-shared", "-pthread", str(source)]
        subprocess.run([*command, "-o", str(target), *LIBRARIES], check=True)
        return target.read_bytes()


@cache
def _compiled(version: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "compiled.o")
        headers = Path(fmpy.__file__).parent / "c-code"
        command = [_compiler(), *FLAGS, f"-DFMI={version[-1]}", f"-I{headers}", "-c", str(SOURCE)]
        subprocess.run([*command, "-o", str(target)], check=True)
        return target.read_bytes()


def _compiler() -> str:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    return compiler


_FMI2 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="Misbehaving" guid="{{misbehaving}}" variableNamingConvention="structured">
  <{interface} modelIdentifier="Misbehaving"{capabilities}/>
  <LogCategories><Category name="logStatusError"/></LogCategories>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.1"/>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="1" causality="input" variability="continuous">
      <Real start="0"/></ScalarVariable>
    <ScalarVariable name="w" valueReference="5" causality="input" variability="continuous">
      <Real start="0"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="2" causality="output" variability="continuous" initial="exact">
      <Real start="1"/></ScalarVariable>
    <ScalarVariable name="k" valueReference="3" causality="parameter" variability="fixed" initial="exact">
      <Real start="1"/></ScalarVariable>
    <ScalarVariable name="n" valueReference="4" causality="output" variability="discrete" initial="calculated">
      <Integer/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="6" causality="local" variability="continuous" initial="calculated">
      <Real derivative="3"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="3" dependencies=""/><Unknown index="5" dependencies=""/></Outputs>
    <Derivatives><Unknown index="6" dependencies="1 3"/></Derivatives>
    <InitialUnknowns><Unknown index="5" dependencies=""/><Unknown index="6" dependencies="1 3 4"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
"""

_FMI3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="Misbehaving" instantiationToken="{{misbehaving}}"
    variableNamingConvention="structured">
  <{interface} modelIdentifier="Misbehaving"{capabilities}/>
  <LogCategories><Category name="logStatusError"/></LogCategories>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.1"/>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
    <Float64 name="u" valueReference="1" causality="input" variability="continuous" start="0"{intermediate}/>
    <Float64 name="w" valueReference="5" causality="input" variability="continuous" start="0"/>
    <Float64 name="x" valueReference="2" causality="output" variability="continuous" initial="exact" start="1"/>
    <Float64 name="k" valueReference="3" causality="parameter" variability="fixed" initial="exact" start="1"/>
    <Int32 name="n" valueReference="4" causality="output" variability="discrete" initial="calculated"/>
    <Float64 name="der(x)" valueReference="6" causality="local" variability="continuous" initial="calculated"
      derivative="2"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="2" dependencies=""/>
    <Output valueReference="4" dependencies=""/>
    <ContinuousStateDerivative valueReference="6" dependencies="1 2"/>
    <InitialUnknown valueReference="4" dependencies=""/>
    <InitialUnknown valueReference="6" dependencies="1 2 3"/>
  </ModelStructure>
</fmiModelDescription>
"""


def _description(version: str, interface: str, capabilities: Mapping[str, str]) -> str:
    intermediate = capabilities.get("providesIntermediateUpdate") == "true"
    attributes = "".join(f' {name}="{value}"' for name, value in capabilities.items())
    return (_FMI2 if version == "fmi2" else _FMI3).format(
        interface=interface,
        capabilities=attributes,
        intermediate=' intermediateUpdate="true"' if intermediate else "",
    )

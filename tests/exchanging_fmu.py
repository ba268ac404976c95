"""A Model Exchange FMU of FMI 3.0 that refuses each call that the standard does not allow in the present state.

``exchanging.c`` says what it computes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import fmpy
import pytest

SOURCE = Path(__file__).parent / "exchanging" / "exchanging.c"
FLAGS = (
    "-std=c11",
    "-O1",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
)

_DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="Exchanging" instantiationToken="exchanging">
  <ModelExchange modelIdentifier="Exchanging" canGetAndSetFMUState="{can_save}"
    needsCompletedIntegratorStep="true"/>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.1"/>
  <ModelVariables>
    <Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>
    <Float64 name="x" valueReference="1" causality="output" variability="continuous" initial="exact" start="0"/>
    <Float64 name="der(x)" valueReference="2" causality="local" derivative="1" initial="calculated"/>
    <Float64 name="u" valueReference="3" causality="input" start="0"/>
    <Float64 name="d" valueReference="4" causality="input" variability="discrete" start="0"/>
    <Float64 name="period" valueReference="5" causality="parameter" variability="fixed" start="1e9"/>
    <Float64 name="threshold" valueReference="6" causality="parameter" variability="fixed" start="1e9"/>
    <Int32 name="n" valueReference="7" causality="output" variability="discrete" initial="calculated"/>
    <Int32 name="state_events" valueReference="8" causality="output" variability="discrete" initial="calculated"/>
    <Int32 name="stubborn" valueReference="9" causality="parameter" variability="fixed" start="0"/>
    <Int32 name="eager" valueReference="10" causality="parameter" variability="fixed" start="0"/>
    <Int32 name="entries" valueReference="11" causality="output" variability="discrete" initial="calculated"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="1"/>
    <Output valueReference="7" dependencies=""/>
    <Output valueReference="8" dependencies=""/>
    <Output valueReference="11" dependencies=""/>
    <ContinuousStateDerivative valueReference="2"/>
    <InitialUnknown valueReference="2"/>
    <InitialUnknown valueReference="7" dependencies=""/>
    <InitialUnknown valueReference="8" dependencies=""/>
    <InitialUnknown valueReference="11" dependencies=""/>
    <EventIndicator valueReference="2"/>
  </ModelStructure>
</fmiModelDescription>
"""


def exchanging(folder: Path, can_save: bool = True) -> Path:
    """Make the FMU in a folder."""
    path = folder / "Exchanging.fmu"
    library = f"binaries/{fmpy.platform_tuple}/Exchanging{fmpy.sharedLibraryExtension}"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "modelDescription.xml", _DESCRIPTION.format(can_save=str(can_save).lower())
        )
        archive.writestr(library, _library())
    return path


@cache
def _library() -> bytes:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "library")
        headers = Path(fmpy.__file__).parent / "c-code"
        command = [compiler, *FLAGS, f"-I{headers}", str(SOURCE), "-o", str(target), "-lm"]
        subprocess.run(command, check=True)
        return target.read_bytes()

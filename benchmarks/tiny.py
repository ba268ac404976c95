"""Makes the tiny FMU of tiny.c, whose DoStep takes some 10 ns: so only the master is measured."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import fmpy

SOURCE = Path(__file__).with_name("tiny.c")

HEADERS = {2: "fmi2Functions.h", 3: "fmi3Functions.h"}

FMI2 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="Tiny" guid="tiny">
  <CoSimulation modelIdentifier="Tiny" canHandleVariableCommunicationStepSize="true"/>
  <ModelVariables>
    <ScalarVariable name="left" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="right" valueReference="1" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="2" causality="output" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="3" causality="output" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="k" valueReference="4" causality="parameter" variability="fixed">
      <Real start="1"/>
    </ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="3" dependencies=""/><Unknown index="4" dependencies=""/></Outputs>
  </ModelStructure>
</fmiModelDescription>
"""

FMI3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="Tiny" instantiationToken="tiny">
  <CoSimulation modelIdentifier="Tiny" canHandleVariableCommunicationStepSize="true"/>
  <ModelVariables>
    <Float64 name="left" valueReference="0" causality="input" start="0"/>
    <Float64 name="right" valueReference="1" causality="input" start="0"/>
    <Float64 name="x" valueReference="2" causality="output" initial="exact" start="1"/>
    <Float64 name="v" valueReference="3" causality="output" initial="exact" start="0"/>
    <Float64 name="k" valueReference="4" causality="parameter" variability="fixed" start="1"/>
    <Float64 name="time" valueReference="5" causality="independent"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="2" dependencies=""/>
    <Output valueReference="3" dependencies=""/>
  </ModelStructure>
</fmiModelDescription>
"""


def write_tiny(target: Path, fmi: int, inner_steps: int = 1) -> None:
    """Compile and pack the FMU of FMI 2.0 or 3.0; each of the inner steps of a DoStep takes some 15 ns."""
    platform = fmpy.platform if fmi == 2 else fmpy.platform_tuple
    library = f"Tiny{fmpy.sharedLibraryExtension}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "tiny.c"
        source.write_text(SOURCE.read_text() + _missing(fmi))
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", f"-DFMI={fmi}"]
        flags += [f"-DINNER_STEPS={inner_steps}"]
        command = ["cc", *flags, "-fvisibility=hidden", "-o", library, source.name]
        subprocess.run(command, cwd=folder, check=True)
        with ZipFile(target, "w", ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", FMI2 if fmi == 2 else FMI3)
            archive.write(Path(folder) / library, f"binaries/{platform}/{library}")


def _missing(fmi: int) -> str:
    """The functions of the standard that tiny.c does not have: all return Error. Most tools look for all."""
    header = (Path(fmpy.__file__).parent / "c-code" / HEADERS[fmi]).read_text()
    names = re.findall(rf"\bFMI{fmi}_Export\s+\w+TYPE\s+(\w+);", header)
    here = set(re.findall(r"\b(fmi\d\w+)\(", SOURCE.read_text()))
    return "".join(
        f"PUBLIC int {name}(void) {{ return 3; }}\n" for name in names if name not in here
    )

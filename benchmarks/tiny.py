"""Makes the tiny FMU of tiny.c, whose DoStep takes some 10 ns: so only the master is measured."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import fmpy

SOURCE = Path(__file__).with_name("tiny.c")

HEADERS = {2: "fmi2Functions.h", 3: "fmi3Functions.h"}

VARIABLES = (
    ("left", "input", "", 0),
    ("right", "input", "", 0),
    ("x", "output", "exact", 1),
    ("v", "output", "exact", 0),
    ("k", "parameter", "exact", 1),
)
"""Name, causality, initial, start; value references are their places, in the enumeration of tiny.c."""


def write_tiny(target: Path, fmi: int, inner_steps: int = 1, more_outputs: int = 0) -> None:
    """Compile and pack the FMU of FMI 2.0 or 3.0.

    Parameters
    ----------
    inner_steps : int
        Steps of the method in a DoStep; each takes some 15 ns.
    more_outputs : int
        Outputs ``y0``, ``y1``, ... that are always 0.
    """
    platform = fmpy.platform if fmi == 2 else fmpy.platform_tuple
    library = f"Tiny{fmpy.sharedLibraryExtension}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "tiny.c"
        source.write_text(
            SOURCE.read_text(encoding="utf-8") + _missing(fmi), encoding="utf-8", newline="\n"
        )
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", f"-DFMI={fmi}"]
        flags += [f"-DINNER_STEPS={inner_steps}", f"-DMORE_OUTPUTS={more_outputs}"]
        command = ["cc", *flags, "-fvisibility=hidden", "-o", library, source.name]
        subprocess.run(command, cwd=folder, check=True)
        with ZipFile(target, "w", ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", "\n".join(_description(fmi, more_outputs)))
            archive.write(Path(folder) / library, f"binaries/{platform}/{library}")


def _description(fmi: int, more_outputs: int) -> Iterator[str]:
    more = tuple((f"y{n}", "output", "exact", 0) for n in range(more_outputs))
    variables = [*enumerate((*VARIABLES, *more))]
    outputs = [n for n, (_, causality, _, _) in variables if causality == "output"]
    token = "guid" if fmi == 2 else "instantiationToken"
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<fmiModelDescription fmiVersion="{fmi}.0" modelName="Tiny" {token}="tiny">'
    yield '<CoSimulation modelIdentifier="Tiny" canHandleVariableCommunicationStepSize="true"/>'
    yield "<ModelVariables>"
    for n, (name, causality, initial, start) in variables:
        attributes = f'name="{name}" valueReference="{n}" causality="{causality}"'
        attributes += f' initial="{initial}"' if initial else ""
        attributes += ' variability="fixed"' if causality == "parameter" else ""
        if fmi == 2:
            yield f'<ScalarVariable {attributes}><Real start="{start}"/></ScalarVariable>'
        else:
            yield f'<Float64 {attributes} start="{start}"/>'
    if fmi == 3:
        yield f'<Float64 name="time" valueReference="{len(variables)}" causality="independent"/>'
    yield "</ModelVariables><ModelStructure>" + ("<Outputs>" if fmi == 2 else "")
    for n in outputs:
        known = f'Unknown index="{n + 1}"' if fmi == 2 else f'Output valueReference="{n}"'
        yield f'<{known} dependencies=""/>'
    yield ("</Outputs>" if fmi == 2 else "") + "</ModelStructure></fmiModelDescription>"


def _missing(fmi: int) -> str:
    """The functions of the standard that tiny.c does not have: all return Error. Most tools look for all."""
    header = (Path(fmpy.__file__).parent / "c-code" / HEADERS[fmi]).read_text(encoding="utf-8")
    names = re.findall(rf"\bFMI{fmi}_Export\s+\w+TYPE\s+(\w+);", header)
    here = set(re.findall(r"\b(fmi\d\w+)\(", SOURCE.read_text(encoding="utf-8")))
    return "".join(
        f"PUBLIC int {name}(void) {{ return 3; }}\n" for name in names if name not in here
    )

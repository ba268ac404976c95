"""FMUs of FMI 2.0 without FMU states, whose outputs follow their inputs at once, or only in steps: ``following.c``."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import fmpy
import pytest

SOURCE = Path(__file__).parent / "following" / "following.c"
FLAGS = (
    *("-std=gnu11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"),
)
PARAMETERS = ("c0", "c1", "c2", "d")


def following(
    path: Path, start: Sequence[float], *, follows: bool = True, disturbed: bool = False
) -> Path:
    """Make one; ``start``: values of c0, c1, c2 and d in x' = u - x, y = c0 + c1 u + c2 u^2 + d x."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    library, headers = path.with_suffix(".so"), Path(fmpy.__file__).parent / "c-code"
    values = ",".join(map(repr, start))
    given = [f"-DSTART={values}", f"-DFOLLOWS={follows:d}", f"-DDISTURBED={disturbed:d}"]
    command = [compiler, *FLAGS, *given, f"-I{headers}", str(SOURCE), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", _description(start))
        archive.write(library, f"binaries/{fmpy.platform}/following{fmpy.sharedLibraryExtension}")
    return path


def _description(start: Sequence[float]) -> str:
    parameters = "".join(
        f'<ScalarVariable name="{name}" valueReference="{k}" causality="parameter" variability="fixed" initial="exact">'
        f'<Real start="{value!r}"/></ScalarVariable>'
        for k, (name, value) in enumerate(zip(PARAMETERS, start, strict=True), start=2)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<fmiModelDescription fmiVersion="2.0" modelName="following" guid="following">'
        '<CoSimulation modelIdentifier="following" canHandleVariableCommunicationStepSize="true"/>'
        '<DefaultExperiment stepSize="0.1"/><ModelVariables>'
        '<ScalarVariable name="u" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>'
        '<ScalarVariable name="y" valueReference="1" causality="output" initial="calculated"><Real/></ScalarVariable>'
        f"{parameters}</ModelVariables><ModelStructure>"
        '<Outputs><Unknown index="2" dependencies="1"/></Outputs>'
        '<InitialUnknowns><Unknown index="2" dependencies="1 3 4 5 6"/></InitialUnknowns>'
        "</ModelStructure></fmiModelDescription>"
    )

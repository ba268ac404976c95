"""FMUs that refuse each call that FMI does not allow, by their own tables of the standards: ``fmus/Strict``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import fmpy
import pytest

FOLDER = Path(__file__).parents[1] / "fmus" / "Strict"
FLAGS = (
    *("-std=gnu11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-Wall", "-Wextra", "-Werror"),
)


@dataclass(frozen=True)
class Strict:
    """What such an FMU declares.

    Parameters
    ----------
    version : str
        "fmi2" or "fmi3".
    exchange : bool
        Whether it is for Model Exchange.
    events, early, clocks, intermediate : bool
        Event Mode, early returns, clocks and intermediate updates, of Co-Simulation of FMI 3.0.
    direct : bool
        Whether its output depends directly on its input.
    states, derivatives : bool
        Whether it can get and set its state, and has directional derivatives.
    """

    version: str
    exchange: bool = False
    events: bool = False
    early: bool = False
    clocks: bool = False
    intermediate: bool = False
    direct: bool = False
    states: bool = True
    derivatives: bool = False

    def write(self, folder: Path, name: str) -> Path:
        """The FMU as a file."""
        path = folder / f"{name}.fmu"
        platform = fmpy.platform if self.version == "fmi2" else fmpy.platform_tuple
        library = f"binaries/{platform}/strict{fmpy.sharedLibraryExtension}"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("modelDescription.xml", self._description())
            archive.writestr(library, _library(self.version))
        return path

    def _description(self) -> str:
        is_old, version = self.version == "fmi2", f"{self.version[-1]}.0"
        token = " ".join(["strict", *["events"] * self.events, *["clocks"] * self.clocks])
        head = {"fmiVersion": version, "modelName": "Strict"}
        head |= {"guid" if is_old else "instantiationToken": token}
        if is_old and self.exchange:
            head["numberOfEventIndicators"] = "1"
        interface = "ModelExchange" if self.exchange else "CoSimulation"
        rows = [line.split() for line in (VARIABLES + CLOCKS * self.clocks).splitlines() if line]
        variables = (self._old(*row) if is_old else self._new(*row) for row in rows)
        structure = self._old_structure() if is_old else self._new_structure()
        return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription {_attributes(head)}>
  <{interface} modelIdentifier="strict" {_attributes(self._capabilities())}/>
  <LogCategories><Category name="logStatusError"/></LogCategories>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.1"/>
  <ModelVariables>{"".join(variables)}</ModelVariables>
  <ModelStructure>{structure}</ModelStructure>
</fmiModelDescription>"""

    def _capabilities(self) -> dict[str, bool]:
        if self.version == "fmi2":
            can = {"canGetAndSetFMUstate": self.states}
            can["providesDirectionalDerivative"] = self.derivatives
            steps = {"canHandleVariableCommunicationStepSize": True}
            return can if self.exchange else can | steps
        can = {"canGetAndSetFMUState": self.states}
        can["providesDirectionalDerivatives"] = self.derivatives
        if self.exchange:
            return can | {"needsCompletedIntegratorStep": True}
        return can | {
            "canHandleVariableCommunicationStepSize": True,
            "hasEventMode": self.events,
            "mightReturnEarlyFromDoStep": self.early,
            "providesIntermediateUpdate": self.intermediate,
        }

    def _new(
        self, kind: str, name: str, reference: str, causality: str, variability: str, *more: str
    ) -> str:
        inside = self.intermediate and name in "uy"
        update = ['intermediateUpdate="true"'] * inside
        known = {"name": name, "valueReference": reference, "causality": causality}
        return f"<{kind} {_attributes(known | {'variability': variability})} {' '.join((*more, *update))}/>"

    def _old(
        self, kind: str, name: str, reference: str, causality: str, variability: str, *more: str
    ) -> str:
        if causality == "independent" or name == "z":
            return ""
        known = {"name": name, "valueReference": reference, "causality": causality}
        inner = " ".join(a for a in more if not a.startswith("initial"))
        outer = " ".join(a for a in more if a.startswith("initial"))
        kind = {"Float64": "Real", "Int32": "Integer"}[kind]
        attributes = _attributes(known | {"variability": variability})
        return f"<ScalarVariable {attributes} {outer}><{kind} {inner}/></ScalarVariable>"

    def _new_structure(self) -> str:
        u = " 3" * self.direct
        outputs = {"4": f"1{u}", "5": ""} | ({"21": "", "22": "", "23": ""} if self.clocks else {})

        def entries(kind: str, known: dict[str, str]) -> str:
            entry = '<{} valueReference="{}" dependencies="{}"/>'
            return "".join(entry.format(kind, r, of) for r, of in known.items())

        return (
            entries("Output", outputs)
            + entries("ContinuousStateDerivative", {"2": "1 3"})
            + entries("InitialUnknown", {"2": "1 3"} | outputs)
            + '<EventIndicator valueReference="8"/>'
        )

    def _old_structure(self) -> str:
        y = f'<Unknown index="4" dependencies="1{" 3" * self.direct}"/>'
        n, x = '<Unknown index="5" dependencies=""/>', '<Unknown index="2" dependencies="1 3"/>'
        parts = {"Outputs": y + n, "Derivatives": x, "InitialUnknowns": x + y + n}
        return "".join(f"<{name}>{content}</{name}>" for name, content in parts.items())


VARIABLES = """
Float64 time     0  independent continuous
Float64 x        1  local       continuous initial="exact" start="1"
Float64 der(x)   2  local       continuous derivative="1"
Float64 u        3  input       continuous start="0"
Float64 y        4  output      continuous
Int32   n        5  output      discrete
Float64 period   6  parameter   fixed      start="0"
Int32   m        7  input       discrete   start="0"
Float64 z        8  local       continuous
Float64 d        9  parameter   fixed      start="0"
Float64 stop     10 parameter   fixed      start="0"
Int32   announce 11 parameter   fixed      start="0"
"""
"""Type, name, value reference, causality, variability and other attributes of each variable."""
CLOCKS = """
Clock   tick     20 input       discrete   intervalVariability="constant" intervalDecimal="0.25"
Float64 held     21 output      discrete   clocks="20"
Clock   out      22 output      discrete   intervalVariability="triggered"
Int32   copy     23 output      discrete   clocks="22"
Clock   in       24 input       discrete   intervalVariability="triggered"
Int32   sum      25 input       discrete   clocks="24" start="0"
Clock   count    26 input       discrete   intervalVariability="countdown"
"""


def _attributes(can: Mapping[str, str | bool]) -> str:
    return " ".join(
        f'{name}="{value if isinstance(value, str) else str(value).lower()}"'
        for name, value in can.items()
    )


@cache
def _library(version: str) -> bytes:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "library")
        headers = Path(fmpy.__file__).parent / "c-code"
        source = str(FOLDER / "strict.c")
        command = [compiler, *FLAGS, f"-DFMI={version[-1]}", f"-I{headers}", f"-I{FOLDER}", source]
        done = subprocess.run(
            [*command, "-o", str(target), "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return target.read_bytes()

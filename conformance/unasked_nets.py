"""Nets of linear FMUs with their exact solution: the systems without events of ``unasked.py``.

A net is units of ``fmus/linear_writer.py`` and connections. All units together are one linear system; algebraic loops
are solved, and the states are matrix exponentials. An input from a file adds its value and its slope to the states.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from linear_system import LinearSystem
from linear_writer import fmu_files
from numpy.typing import NDArray
from scipy.linalg import block_diag, expm

from fmimaster import SystemBuilder, reference_path
from fmimaster.system.description import SystemDescription

Array = NDArray[np.float64]

VERSIONS = {"fmi2": ("fmi2",), "fmi3": ("fmi3",), "mixed": ("fmi2", "fmi3")}
"""Version of FMI of the units, in turn."""


class Piece(NamedTuple):
    """A stretch of time in which z' = A z, from z = start."""

    begin: float
    """[s]"""
    matrix: Array
    start: Array


def states(pieces: Sequence[Piece], times: Array) -> Iterator[tuple[int, Array]]:
    """The piece and its states at each of these times in s, which never go down; right limits where a piece begins."""
    begins = np.array([piece.begin for piece in pieces])
    steps: dict[tuple[int, float], Array] = {}
    number, at, z = -1, 0.0, np.zeros(0)
    for time in times:
        k = max(int(np.searchsorted(begins, time, side="right")) - 1, 0)
        if k != number:
            number, at, z = k, pieces[k].begin, pieces[k].start
        h = round(float(time) - at, 13)  # equal steps have one matrix
        if h > 0.0:
            key = id(pieces[k].matrix), h
            if key not in steps:
                steps[key] = expm(pieces[k].matrix * h)
            z, at = steps[key] @ z, at + h
        yield k, z


class Connection(NamedTuple):
    """input = factor * output."""

    source: str
    """ "unit.output"."""
    target: str
    factor: float = 1.0


@dataclass(frozen=True)
class Signal:
    """An input from a file: linear between its points; two points of one time are a jump."""

    target: str
    """ "unit.input"."""
    times: tuple[float, ...]
    values: tuple[float, ...]

    def pieces(self) -> Iterator[tuple[float, float, float]]:
        """The time at which each line begins, its value there, and its slope."""
        points = list(zip(self.times, self.values, strict=True))
        for (t, value), (later, after) in pairwise(points):
            if later > t:
                yield t, value, (after - value) / (later - t)


@dataclass(frozen=True)
class Net:
    """Linear units, their connections, and at most one input from a file."""

    units: Mapping[str, LinearSystem]
    connections: Sequence[Connection]
    signal: Signal | None = None

    @property
    def inputs(self) -> list[str]:
        return [f"{name}.{u}" for name, unit in self.units.items() for u in unit.inputs]

    @property
    def outputs(self) -> list[str]:
        return [f"{name}.{y}" for name, unit in self.units.items() for y in unit.outputs]

    def closed(self) -> Closed:
        """All units as one system."""
        units = list(self.units.values())
        a, b, c, d = (block_diag(*(getattr(u, m) for u in units)) for m in "abcd")
        e, f, x0, u0 = (
            np.concatenate([getattr(u, v) for u in units]) for v in ("e", "f", "x0", "u0")
        )
        link = np.zeros((len(self.inputs), len(self.outputs)))
        for source, target, factor in self.connections:
            link[self.inputs.index(target), self.outputs.index(source)] += factor
        free = u0 * (
            np.abs(link).sum(axis=1) == 0.0
        )  # inputs that are not connected keep their start values
        width = len(x0) + 1 + 2 * (self.signal is not None)
        of_input = np.zeros((len(self.inputs), width))
        of_input[:, len(x0)] = free
        if self.signal is not None:
            row = self.inputs.index(self.signal.target)
            of_input[row] = 0.0
            of_input[row, -2] = 1.0
        wide = np.zeros((len(x0), width))
        wide[:, : len(x0)], wide[:, len(x0)] = a, e
        output = np.zeros((len(self.outputs), width))
        output[:, : len(x0)], output[:, len(x0)] = c, f
        output = np.linalg.solve(np.eye(len(output)) - d @ link, output + d @ of_input)
        matrix = np.zeros((width, width))
        matrix[: len(x0)] = wide + b @ (link @ output + of_input)
        if self.signal is not None:
            matrix[-2, -1] = 1.0
        return Closed(self, matrix, output, x0)

    def system(self, name: str, made: Made, folder: Path) -> SystemDescription:
        """The description of the system; its FMUs are written into the folder."""
        builder = SystemBuilder(name)
        for k, (unit, system) in enumerate(self.units.items()):
            builder.add(unit, made.write(folder / f"{unit}.fmu", system, k))
        for source, target, factor in self.connections:
            builder.connect(source, target, factor=factor)
        return builder.build()

    def file(self, folder: Path) -> Path:
        """The file of the input."""
        assert self.signal is not None
        path = folder / "input.csv"
        rows = zip(self.signal.times, self.signal.values, strict=True)
        lines = [f"time,{self.signal.target}", *(f"{t!r},{value!r}" for t, value in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        return path


@dataclass(frozen=True)
class Closed:
    """A net as one system: z' = A z, y = C z, where z are all states, 1, and value and slope of the input."""

    net: Net
    matrix: Array
    output: Array
    x0: Array

    @property
    def eigenvalues(self) -> NDArray[Any]:
        """Of all states."""
        n = len(self.x0)
        return np.linalg.eigvals(self.matrix[:n, :n])

    def pieces(self) -> list[Piece]:
        """Of the states."""
        start = np.array([*self.x0, 1.0])
        signal = self.net.signal
        if signal is None:
            return [Piece(0.0, self.matrix, start)]
        made: list[Piece] = []
        for begin, value, slope in signal.pieces():
            if made:
                start = (
                    expm(made[-1].matrix * (begin - made[-1].begin))[: len(start)] @ made[-1].start
                )
            made.append(Piece(begin, self.matrix, np.array([*start, value, slope])))
        return made

    def solution(self, times: Array) -> dict[str, Array]:
        """Output → its exact values at these times in s."""
        found = np.array([self.output @ z for _, z in states(self.pieces(), times)])
        return dict(zip(self.net.outputs, found.T, strict=True))

    def step(self) -> Fraction:
        """[s] A step that is right: the fastest mode changes by a tenth in it. One digit."""
        return Fraction(f"{0.1 / float(np.abs(self.eigenvalues).max()):.0e}")


@dataclass(frozen=True)
class Made:
    """What the FMUs of a net have."""

    version: str = "fmi2"
    holds: bool = False
    """They hold their inputs; otherwise these can be lines over a step."""
    dependencies: str = "declared"
    """``declared``, ``none`` for FMUs that list none, ``hidden`` for outputs that are said to depend on nothing."""
    states: bool = True
    """They can get and set their FMU state."""
    discrete: Sequence[str] = ()
    """Outputs that are declared discrete."""
    suggested: float | None = None
    """[s] The step size of the DefaultExperiment."""

    def write(self, path: Path, system: LinearSystem, number: int) -> Path:
        """The FMU of a unit with this number."""
        versions = VERSIONS[self.version]
        version = versions[number % len(versions)]
        with zipfile.ZipFile(reference_path(f"{version}/LinearSystem.fmu")) as archive:
            template = {name: archive.read(name) for name in archive.namelist()}
        files = fmu_files(system, template)
        root = ET.fromstring(files["modelDescription.xml"])
        self._edit(root)
        files["modelDescription.xml"] = ET.tostring(root, encoding="utf-8", xml_declaration=True)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path

    def _edit(self, root: ET.Element) -> None:
        """The model description of an FMU that can do all."""
        of_slave, experiment = root.find("CoSimulation"), root.find("DefaultExperiment")
        assert of_slave is not None
        assert experiment is not None
        lacking = ["canInterpolateInputs", "providesIntermediateUpdate"] if self.holds else []
        if not self.states:
            lacking += [f"canGetAndSetFMU{s}" for s in ("state", "State")]
            lacking += [f"canSerializeFMU{s}" for s in ("state", "State")]
        for name in lacking:
            of_slave.attrib.pop(name, None)
        experiment.attrib.pop("stepSize", None)
        if self.suggested is not None:
            experiment.set("stepSize", repr(self.suggested))
        for variable in root.iterfind("ModelVariables/*"):
            if variable.get("name") in self.discrete:
                variable.set("variability", "discrete")
        outputs = [
            *root.iterfind("ModelStructure/Outputs/*"),
            *root.iterfind("ModelStructure/Output"),
        ]
        for entry in outputs if self.dependencies != "declared" else ():
            entry.attrib.pop("dependenciesKind", None)
            if self.dependencies == "hidden":
                entry.set("dependencies", "")
            else:
                entry.attrib.pop("dependencies", None)


def unit(
    a: Any, b: Any, c: Any, d: Any = None, e: Any = None, f: Any = None, x0: Any = None, **more: Any
) -> LinearSystem:
    """A linear system by its matrices, those that are left out are zero."""
    return LinearSystem(a=a, b=b, c=c, d=d, e=e, f=f, x0=x0, **more)

"""The systems that are measured, said once for all tools: a few FMUs, their connections, a fixed step."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from numpy.typing import NDArray

from fmimaster import SystemBuilder, reference_path
from fmimaster.system.description import SystemDescription


@dataclass(frozen=True)
class Component:
    """One instance of an FMU; all its inputs and outputs are Reals."""

    name: str
    path: Path
    start_values: dict[str, float | str]

    @property
    def file(self) -> FmuFile:
        """Its FMU, unpacked."""
        return fmu_file(self.path)


@dataclass(frozen=True)
class System:
    """Components with the connections ``(source, output, target, input)``.

    Attributes
    ----------
    passes : int
        How often initial values go round until they agree.
    goal : float
        How many times the time of the C limit is allowed.
    """

    name: str
    fmi: int
    components: tuple[Component, ...]
    connections: tuple[tuple[int, str, int, str], ...]
    steps: int
    goal: float
    step: Fraction = Fraction(1, 1000)
    passes: int = 1

    def of(self, steps: int) -> System:
        """The same for so many steps."""
        return replace(self, steps=steps)

    @property
    def stop(self) -> Fraction:
        """Stop time in s."""
        return self.steps * self.step

    @property
    def columns(self) -> list[tuple[int, str]]:
        """Component and name of all outputs, in the order of a row."""
        return [(i, name) for i, c in enumerate(self.components) for name in c.file.outputs]

    @property
    def names(self) -> list[str]:
        """Full names of all outputs, in the order of a row."""
        return [f"{self.components[i].name}.{name}" for i, name in self.columns]

    def described(self) -> SystemDescription:
        """The system for fmimaster."""
        builder = SystemBuilder("benchmark")
        for c in self.components:
            builder.add(c.name, c.path, c.start_values)
        for source, output, target, name in self.connections:
            a, b = self.components[source].name, self.components[target].name
            builder.connect(f"{a}.{output}", f"{b}.{name}")
        return builder.build()


@dataclass
class FmuFile:
    """An FMU, unpacked, with what the hand-written loops need to know."""

    path: Path
    folder: Path
    description: Any
    references: dict[str, int] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def library(self) -> Path:
        """Its shared library."""
        platform = fmpy.platform if self.description.fmiVersion == "2.0" else fmpy.platform_tuple
        name = self.description.coSimulation.modelIdentifier + fmpy.sharedLibraryExtension
        return self.folder / "binaries" / str(platform) / name


@cache
def fmu_file(path: Path) -> FmuFile:
    """Unpack an FMU; it stays unpacked until :func:`clean_up`."""
    folder = Path(fmpy.extract(str(path), tempfile.mkdtemp(prefix="benchmark-")))
    file = FmuFile(path, folder, fmpy.read_model_description(str(folder), validate=False))
    _UNPACKED.append(folder)
    for v in file.description.modelVariables:
        file.references[v.name] = v.valueReference
        if v.causality in ("input", "output"):
            (file.inputs if v.causality == "input" else file.outputs).append(v.name)
    return file


_UNPACKED: list[Path] = []


def clean_up() -> None:
    """Delete what was unpacked."""
    for folder in _UNPACKED:
        shutil.rmtree(folder, ignore_errors=True)


def ring(fmi: int, n: int, *, steps: int, goal: float, path: Path | None = None) -> System:
    """A ring of n small FMUs (Dahlquist, or another with its variables) from one file; with two of them, a pair."""
    path = path or reference_path(f"fmi{fmi}/Dahlquist.fmu")
    name = "two coupled" if n == 2 else f"ring of {n}"
    # fmpy takes d10's parameters for d1's: no name may begin like another
    components = tuple(Component(f"d{i:03}", path, {"k": 1.0 + i / n}) for i in range(n))
    connections = tuple((i, "x", (i + 1) % n, "u") for i in range(n))
    return System(f"{name}, FMI {fmi}.0", fmi, components, connections, steps, goal)


def quarter_truck(folder: Path, steps: int) -> System:
    """The quarter truck of libcosim; not shipped here, give the folder of its two FMUs."""
    euler: dict[str, float | str] = {"solverType": "Euler", "timeStep": 1e-5}
    components = (
        Component("chassis", folder / "Chassis.fmu", {"mass": 400.0, **euler}),
        Component("wheel", folder / "Wheel.fmu", {"mass": 40.0, **euler}),
    )
    connections = (
        (0, "velocity", 1, "in_vel"),
        (1, "out_spring_damper_f", 0, "force"),
    )
    return System("quarter truck, FMI 2.0", 2, components, connections, steps, 1.1)


@dataclass(frozen=True)
class Measured:
    """What a tool needed for its loop, in s, and what it recorded; None where only time was asked for."""

    wall: float
    cpu: float
    rows: NDArray[np.float64] | None


def deviation(rows: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Largest difference of two trajectories of equal length, relative to the largest value of each column."""
    scale = np.maximum(np.abs(truth).max(axis=0), 1e-300)
    return float((np.abs(rows - truth) / scale).max())


def variants(quick: bool, truck: Path | None) -> Sequence[System]:
    """All systems of the table; a run of the C limit takes some 0.1 s."""
    part = 10 if quick else 1
    systems = []
    for n, steps, goal in ((2, 1_000_000, 1.2), (10, 200_000, 1.2), (100, 20_000, 1.5)):
        systems += [ring(fmi, n, steps=steps // part, goal=goal) for fmi in (2, 3)]
    if truck is not None:
        systems.append(quarter_truck(truck, 2_000 if quick else 20_000))
    return systems

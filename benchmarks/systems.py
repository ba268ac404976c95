"""The systems that are measured, said once for all tools: a few FMUs, their connections, a fixed step."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from goals import RING_GOALS
from numpy.typing import NDArray
from tiny import write_tiny

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


def folder_until_exit() -> Path:
    """A new folder that is deleted when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def fmu_file(path: Path) -> FmuFile:
    """Unpack an FMU; it stays unpacked until Python ends."""
    folder = Path(fmpy.extract(str(path), str(folder_until_exit())))
    file = FmuFile(path, folder, fmpy.read_model_description(str(folder), validate=False))
    for v in file.description.modelVariables:
        file.references[v.name] = v.valueReference
        if v.causality in ("input", "output"):
            (file.inputs if v.causality == "input" else file.outputs).append(v.name)
    return file


@cache
def tiny_fmu(fmi: int, inner_steps: int = 1, more_outputs: int = 0) -> Path:
    """The tiny FMU of FMI 2.0 or 3.0, compiled once."""
    path = folder_until_exit() / "Tiny.fmu"
    write_tiny(path, fmi, inner_steps, more_outputs)
    return path


@dataclass(frozen=True)
class Kind:
    """What a ring is made of.

    Attributes
    ----------
    name : str
        For tables.
    file : callable
        The FMU of an FMI version.
    links : tuple
        Outputs, and the inputs that they feed so many places further on.
    goals : tuple of float
        Times of the C limit that are allowed in each of :data:`RINGS`.
    """

    name: str
    file: Callable[[int], Path]
    links: tuple[tuple[str, int, str], ...]
    goals: tuple[float, ...] = ()


RINGS = ((2, 1_000_000), (10, 200_000), (100, 20_000))
"""Sizes of the rings that are measured, and steps of which the C limit needs some 0.1 s."""

TINY = Kind("tiny", tiny_fmu, (("x", 1, "left"), ("x", -1, "right")), RING_GOALS["tiny"])

DAHLQUIST = Kind(
    "Dahlquist",
    lambda fmi: reference_path(f"fmi{fmi}/Dahlquist.fmu"),
    (("x", 1, "u"),),
    RING_GOALS["Dahlquist"],
)


def ring(fmi: int, n: int, *, steps: int, goal: float = 0.0, kind: Kind = DAHLQUIST) -> System:
    """A ring of n small FMUs from one file."""
    path = kind.file(fmi)
    # fmpy takes d10's parameters for d1's: no name may begin like another
    components = tuple(Component(f"d{i:03}", path, {"k": 1.0 + i / n}) for i in range(n))
    connections = tuple(
        (i, output, (i + places) % n, input_)
        for i in range(n)
        for output, places, input_ in kind.links
    )
    name = f"{kind.name}, ring of {n}, FMI {fmi}.0"
    return System(name, fmi, components, connections, steps, goal)


def sized_ring(fmi: int, place: int, part: int, kind: Kind) -> System:
    """A ring of :data:`RINGS`, with a part of its steps."""
    n, steps = RINGS[place]
    return ring(fmi, n, steps=steps // part, goal=kind.goals[place], kind=kind)


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
    return System("quarter truck, FMI 2.0", 2, components, connections, steps, 1.05)


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
    systems = [
        sized_ring(fmi, place, part, kind)
        for kind in (TINY, DAHLQUIST)
        for place in range(len(RINGS))
        for fmi in (2, 3)
    ]
    if truck is not None:
        systems.append(quarter_truck(truck, 2_000 if quick else 20_000))
    return systems

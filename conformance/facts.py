"""The facts of a model description that a run needs. They are read without checks: fmimaster and fmpy check them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
import zipfile
from dataclasses import dataclass
from pathlib import Path

TYPES_OF_FMI2 = ("Real", "Integer", "Boolean", "String", "Enumeration")
NO_NUMBERS = ("String", "Binary", "Clock")


@dataclass(frozen=True)
class Variable:
    """A variable, with the names of FMI 3.0."""

    name: str
    type: str
    causality: str
    variability: str
    start: str
    is_array: bool
    is_clocked: bool

    @property
    def is_continuous_input(self) -> bool:
        """Whether it is a scalar input that may change at any time."""
        is_real = self.type in ("Real", "Float64", "Float32") and not self.is_array
        return is_real and self.causality == "input" and self.variability == "continuous"

    @property
    def is_number(self) -> bool:
        """Whether it is a number that can be compared and is always present."""
        return self.type not in NO_NUMBERS and not self.is_clocked


@dataclass(frozen=True)
class Facts:
    """Facts of an FMU; ``identifier`` is None without Co-Simulation. Times in s."""

    exporter: str
    version: str
    identifier: str | None
    has_event_mode: bool
    start: float
    stop: float
    step: float
    variables: tuple[Variable, ...]


def read(fmu: Path) -> Facts:
    """Read them.

    Raises
    ------
    ValueError, OSError, zipfile.BadZipFile, ElementTree.ParseError
        If there is no model description, or its numbers are none.
    """
    with zipfile.ZipFile(fmu) as archive:
        names = {name.replace("\\", "/"): name for name in archive.namelist()}
        if "modelDescription.xml" not in names:
            raise ValueError("it has no modelDescription.xml")
        root = ElementTree.fromstring(archive.read(names["modelDescription.xml"]))
    interface = root.find("CoSimulation")
    experiment = root.find("DefaultExperiment")
    given = experiment.attrib if experiment is not None else {}
    fixed = interface.get("fixedInternalStepSize") if interface is not None else None
    start = float(given.get("startTime", 0.0))
    stop = float(given.get("stopTime", start + 1.0))
    return Facts(
        exporter=root.get("generationTool") or "not named",
        version=root.get("fmiVersion", ""),
        identifier=interface.get("modelIdentifier") if interface is not None else None,
        has_event_mode=interface is not None and interface.get("hasEventMode") in ("true", "1"),
        start=start,
        stop=stop,
        step=float(given.get("stepSize", 0.0)) or float(fixed or 0.0) or (stop - start) / 100,
        variables=tuple(map(_variable, root.find("ModelVariables") or ())),
    )


def _variable(element: ElementTree.Element) -> Variable:
    typed = next((child for child in element if child.tag in TYPES_OF_FMI2), element)
    return Variable(
        name=element.get("name", ""),
        type=typed.tag,
        causality=element.get("causality", "local"),
        variability=element.get("variability", "continuous"),
        start=typed.get("start", "0"),
        is_array=element.find("Dimension") is not None,
        is_clocked="clocks" in element.attrib,
    )

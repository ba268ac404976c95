"""An importer of the class indicators, on FMPy alone: it places communication points at predicted events.

    python importer.py FMU RESULT.csv --stop S --step S [--set NAME=VALUE ...]

It simulates one FMU of FMI 2.0 or FMI 3.0 with a fixed step size, reads the indicators of its manifest after each step, and
ends a step where all indicators of an event will be at or below 0. The FMU executes the event itself. This file shows that
the text is enough to write an importer; the whole of it is the standard's work for an importer of this class.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

MANIFEST = "extra/org.fmimaster.fmi-ls-events/fmi-ls-manifest.xml"
LEVEL = "{http://fmi-standard.org/fmi-ls-manifest}"
MARGIN = 1e-9
"""Of a step: an event that is predicted so near to the present point is treated as there."""

Indicator = tuple[str, str | None]
Samples = list[tuple[float, dict[str, float]]]


def events_of(folder: Path) -> list[list[Indicator]]:
    """Indicators and derivatives of each event; none if there is no manifest of a version 0.x."""
    file = folder / MANIFEST
    root = ET.parse(file).getroot() if file.is_file() else None
    if root is None or not (root.get(f"{LEVEL}fmi-ls-version") or "").startswith("0."):
        return []
    return [
        [(i.attrib["name"], i.get("derivative")) for i in event.iterfind("Indicator")]
        for event in root.iterfind("Event")
    ]


def falls_to_zero(
    name: str, derivative: str | None, samples: Samples, within: float
) -> float | None:
    """[s] from now until an indicator is at or below 0; None if that is not within a time.

    A parabola through the present value and slope and, if there is an earlier one, the slope before; without a derivative
    the straight line through two values.
    """
    time, now = samples[-1]
    z = now[name]
    if z <= 0.0:
        return 0.0
    if len(samples) > 1:
        before, old = samples[-2]
        slope = now[derivative] if derivative else (z - old[name]) / (time - before)
        bend = (slope - old[derivative]) / (time - before) if derivative else 0.0
    elif derivative:
        slope, bend = now[derivative], 0.0
    else:
        return None
    root = slope**2 - 2.0 * bend * z
    if root < 0.0 or (slope >= 0.0 and bend >= 0.0):
        return None
    # the smaller positive root of z + slope h + bend h^2 / 2, without cancellation
    h = 2.0 * z / (root**0.5 - slope) if root**0.5 > slope else within + 1.0
    return h if 0.0 <= h <= within else None


def next_event(events: list[list[Indicator]], samples: Samples, step: float) -> float:
    """[s] from now to the first event within a step, or else the step size."""
    found = step
    for indicators in events:
        times = [falls_to_zero(name, dz, samples, step) for name, dz in indicators]
        is_ahead = any(t is None or t > MARGIN * step for t in times)
        if is_ahead and all(t is not None for t in times):
            found = min(found, max(t for t in times if t is not None))
    return found


def simulate(path: Path, result: Path, stop: float, step: float, start: dict[str, float]) -> None:
    """Simulate an FMU, and write all outputs as CSV, a row for each communication point."""
    folder = Path(fmpy.extract(str(path)))
    description = fmpy.read_model_description(str(folder), validate=False)
    is_fmi3 = str(description.fmiVersion).startswith("3")
    co_simulation: Any = description.coSimulation
    events = events_of(folder)
    floats = {v.name: v for v in description.modelVariables if v.type in ("Real", "Float64")}
    shown = [n for n, v in floats.items() if v.causality == "output" and not v.dimensions]
    needed = [name for event in events for pair in event for name in pair if name]
    names = list(dict.fromkeys((*shown, *needed)))
    fmu: Any = (FMU3Slave if is_fmi3 else FMU2Slave)(
        guid=description.guid,
        unzipDirectory=str(folder),
        modelIdentifier=co_simulation.modelIdentifier,
        instanceName="imported",
    )
    get, put = (fmu.getFloat64, fmu.setFloat64) if is_fmi3 else (fmu.getReal, fmu.setReal)

    def read() -> dict[str, float]:
        return dict(zip(names, get([floats[n].valueReference for n in names]), strict=True))

    fmu.instantiate()
    if not is_fmi3:
        fmu.setupExperiment(startTime=0.0, stopTime=stop)
    for name, value in start.items():
        put([floats[name].valueReference], [value])
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    time, samples = 0.0, [(0.0, read())]
    rows = [[time, *(samples[-1][1][n] for n in shown)]]
    while stop - time > MARGIN * step:
        h = min(next_event(events, samples, step), stop - time)
        is_at_event = h < min(step, stop - time)
        fmu.doStep(time, h)
        time += h
        values = read()
        # no difference reaches over an event (requirement I28): the next parabola begins anew
        samples = [(time, values)] if is_at_event else [samples[-1], (time, values)]
        rows.append([time, *(values[n] for n in shown)])
    fmu.terminate()
    fmu.freeInstance()
    shutil.rmtree(folder, ignore_errors=True)
    with result.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["time", *shown], *([repr(float(v)) for v in row] for row in rows)]
        )


def main(arguments: list[str]) -> None:
    """Simulate one FMU."""
    parser = argparse.ArgumentParser(
        description="Simulate an FMU with steps that end at its events."
    )
    parser.add_argument("fmu", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--stop", type=float, required=True)
    parser.add_argument("--step", type=float, required=True)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)
    start = {name: float(value) for name, _, value in (t.partition("=") for t in given.set)}
    simulate(given.fmu, given.result, given.stop, given.step, start)


if __name__ == "__main__":
    main(sys.argv[1:])

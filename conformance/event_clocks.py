"""Run FMUs that were not made for fmimaster with every event clock: alone, and beside the two masses.

    python conformance/event_clocks.py FOLDER [--table TABLE]

FOLDER is searched for BouncingBall, Stair and StateSpace of modelica's Reference FMUs, FMI 2.0 and 3.0. BouncingBall is
run in these variants, which occur in practice:

* without change; with FMI 3.0 it has an ``<EventIndicator>``;
* without the ``<EventIndicator>``, so it has only outputs;
* with a manifest that names its outputs as indicators, and nothing else.

The FMU is not connected to the two masses. Their events must all be found, and must not affect those of
the FMU. Each run is a separate process with a time limit. The table has

* whether it ran, was refused or failed, and why;
* the largest deviation from the FMU's own run, which has its internal step size and no event clock;
* the number of events in the results, of steps of the FMU, and of restored FMU states;
* missed, false and one-sided events of the two masses.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import tempfile
import warnings
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import facts
import numpy as np
from tables import write_rows

import fmimaster
from fmimaster import SystemBuilder, reference_path
from fmimaster.algorithms import Aligned, Jacobi, Sequential, Waveform
from fmimaster.events import Check, EarlyReturn, LookAhead, Predictive
from fmimaster.fmu.manifest_writer import add_manifest
from fmimaster.inputs import Polynomial
from fmimaster.steps import Locate
from fmimaster.studies.demos.scoring import executions, score
from fmimaster.studies.demos.two_mass import TwoMassReference

QUINTIC = Polynomial(2, 2)
CLOCKS: dict[str, Callable[[str, float], dict[str, Any]]] = {
    "none": lambda first, h: {"algorithm": Jacobi(), "step_size": h},
    "LookAhead": lambda first, h: {
        "algorithm": Jacobi(),
        "step_size": h,
        "event_clock": LookAhead(),
    },
    "Predictive": lambda first, h: {
        "algorithm": Jacobi(QUINTIC),
        "step_size": h,
        "event_clock": Predictive(),
    },
    "EarlyReturn": lambda first, h: {
        "algorithm": Aligned(Jacobi(QUINTIC)),
        "step_size": h,
        "event_clock": EarlyReturn(),
    },
    "EarlyReturn, 2 sweeps": lambda first, h: {
        "algorithm": Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2),
        "step_size": h,
        "event_clock": EarlyReturn(),
    },
    "Check": lambda first, h: {
        "algorithm": Sequential(first),
        "step_size": h,
        "event_clock": Check(),
    },
    "Locate": lambda first, h: {"algorithm": Jacobi(), "step_size": Locate(h)},
}
"""Name → settings, from the component that steps first and the step size in s."""


@dataclass(frozen=True)
class Model:
    """A public FMU, and its variables that can be compared."""

    output: str
    """Output that is compared."""
    internal: float
    """[s] Its solver's step; the output keeps its value in between."""
    stop: float
    """[s]"""


MODELS = {
    "BouncingBall": Model("h", 1e-3, 2.5),  # at rest after 2.8 s
    "Stair": Model("counter", 0.2, 5.5),
    "StateSpace": Model("y", 1e-3, 5.0),
}
MANIFEST = b"""<?xml version="1.0" encoding="UTF-8"?>
<fmiLayeredStandardManifest xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"
    fmi-ls:fmi-ls-name="org.fmimaster.fmi-ls-events" fmi-ls:fmi-ls-version="0.2.0"
    fmi-ls:fmi-ls-description="Event indicator sets, shared events, look-ahead">
  <Event name="floor" scope="private"><Indicator name="h" derivative="v"/><Indicator name="v"/></Event>
</fmiLayeredStandardManifest>
"""
SAME = 1e-9
"""A deviation from the own run up to this one is rounding; the values are of the order of 1."""


@dataclass(frozen=True)
class Guest:
    """An FMU in one of its variants."""

    model: str
    version: str
    has: str
    path: Path


@dataclass(frozen=True)
class Line:
    """A line of the table; ``restores`` and ``steps`` are those of the FMU."""

    fmu: str
    fmi: str
    has: str
    beside: str
    clock: str
    step_size: float
    outcome: str = ""
    deviation: str = ""
    events: str = ""
    steps: str = ""
    restores: str = ""
    masses: str = ""
    warnings: str = ""
    note: str = ""

    @property
    def cell(self) -> str:
        """The outcome in few words: how many events the results have, and what is wrong with the run."""
        if self.outcome != "ran":
            return self.outcome
        wrong = [f"deviates by {self.deviation}"] if float(self.deviation) > SAME else []
        wrong += [f"masses {self.masses}"] if self.masses.strip("0/") else []
        return ", ".join([f"{self.events} events", *wrong])


def guests(folder: Path, work: Path) -> Iterator[Guest]:
    """The variants of all FMUs that are found: of each model and version the first one."""
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.rglob("*.fmu")):
        if path.stem in MODELS:
            of_fmu = facts.read(path)
            if of_fmu.exporter.startswith("Reference FMUs") and of_fmu.identifier:
                found.setdefault((path.stem, of_fmu.version[0]), path)
    for (model, major), path in found.items():
        of_model = Guest(model, f"{major}.0", "outputs only", path)
        has_indicator = major == "3" and model == "BouncingBall"
        yield replace(of_model, has="EventIndicator") if has_indicator else of_model
        if model != "BouncingBall":
            continue
        if has_indicator:
            stripped = work / f"{model}{major}-outputs.fmu"
            without_event_indicators(path, stripped)
            yield replace(of_model, path=stripped)
        with_manifest = add_manifest(path, MANIFEST, work / f"{model}{major}-manifest.fmu")
        yield replace(of_model, has="manifest: indicators", path=with_manifest)


def without_event_indicators(fmu: Path, target: Path) -> None:
    """A copy of an FMU without the EventIndicator elements of its ModelStructure."""
    with zipfile.ZipFile(fmu) as read, zipfile.ZipFile(target, "w") as write:
        for name in read.namelist():
            content = read.read(name)
            if name == "modelDescription.xml":
                root = ElementTree.fromstring(content)
                structure = root.find("ModelStructure")
                assert structure is not None
                for element in structure.findall("EventIndicator"):
                    structure.remove(element)
                content = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
            write.writestr(read.getinfo(name), content)


def system_of(guest: Guest, is_beside: bool) -> Any:
    """The FMU, or a system of it and the two masses."""
    if not is_beside:
        return guest.path
    builder = SystemBuilder("beside")
    builder.add("upper", reference_path("fmi2/TwoMassUpper.fmu"))
    builder.add("lower", reference_path("fmi3/TwoMassLower.fmu"))
    builder.add("guest", guest.path)
    for one, other in (("upper", "lower"), ("lower", "upper")):
        for output, target in (("x", "u_x"), ("v", "u_v"), ("a", "u_a")):
            builder.connect(f"{one}.{output}", f"{other}.{target}")
    builder.share_event("collision", "upper.collision", "lower.collision")
    return builder.build()


def own_run(guest: Guest) -> fmimaster.Results:
    """The FMU alone, with its internal step size and no event clock."""
    model = MODELS[guest.model]
    return fmimaster.simulate(
        guest.path, stop_time=model.stop, step_size=repr(model.internal), event_mode=False
    )


def deviation(guest: Guest, name: str, results: fmimaster.Results, own: fmimaster.Results) -> float:
    """Largest difference to the own run at the internal step before or after; of rows at one time the last one counts.

    Before or after: the FMU does an internal step in advance if nearly all of its time has passed.
    """
    model = MODELS[guest.model]
    last = np.append(np.diff(results.time) > 0, True)
    points = np.floor(results.time[last] / model.internal + 1e-6).astype(int)  # rounding, in steps
    found = np.asarray(results[name], float)[last]
    values = np.asarray(own[model.output], float)
    end = len(values) - 1
    before, after = (
        np.abs(found - values[np.minimum(points + k, end)]).reshape(len(found), -1).max(axis=1)
        for k in (0, 1)
    )
    return float(np.minimum(before, after).max())


def examine(line: Line, guest: Guest, is_beside: bool) -> Line:
    """One run; returns the line with its outcome."""
    model = MODELS[guest.model]
    prefix, first = ("guest.", "upper") if is_beside else ("", guest.path.stem)
    with warnings.catch_warnings(record=True) as caught, executions() as executed:
        warnings.simplefilter("always")
        try:
            results = fmimaster.simulate(
                system_of(guest, is_beside),
                stop_time=model.stop,
                debug_logging=is_beside,
                **CLOCKS[line.clock](first, line.step_size),
            )
        except fmimaster.SimulationError as error:
            return replace(line, outcome="failed", note=f"{type(error).__name__}: {error}")
        except fmimaster.FmimasterError as error:
            return replace(line, outcome="refused", note=f"{type(error).__name__}: {error}")
    own = own_run(guest)
    of_guest = results.statistics.instances[-1]
    masses = ""
    if is_beside:
        s = score(results, executed, TwoMassReference(model.stop))
        masses = f"{s.missed}/{s.false}/{s.one_sided}"
    return replace(
        line,
        outcome="ran" if results.time[-1] >= model.stop else "ended early",
        deviation=f"{deviation(guest, prefix + model.output, results, own):.1e}",
        events=str(len(results.events)),
        steps=str(of_guest.calls),
        restores=str(of_guest.restores),
        masses=masses,
        warnings=str(len(results.statistics.warnings) + len(caught)),
    )


def isolated(line: Line, guest: Guest, is_beside: bool, limit: float) -> Line:
    """:func:`examine` in a separate process, for at most ``limit`` seconds."""
    receive, send = multiprocessing.Pipe(duplex=False)

    def child(end: Connection) -> None:
        end.send(examine(line, guest, is_beside))

    process = multiprocessing.get_context("fork").Process(target=child, args=(send,))
    process.start()
    send.close()
    try:
        if receive.poll(limit):
            done: Line = receive.recv()
            return done
        return replace(line, outcome="timed out", note=f"after {limit:g} s")
    except EOFError:
        process.join()
        return replace(line, outcome="crashed", note=f"status {process.exitcode}")
    finally:
        process.kill()
        process.join()


def all_lines(folder: Path, sizes: Sequence[float], limit: float) -> Iterator[Line]:
    """A line per FMU, variant, system, event clock and step size."""
    with tempfile.TemporaryDirectory(prefix="event-clocks-") as text:
        for guest in guests(folder, Path(text)):
            for is_beside in (False, True):
                for clock in CLOCKS:
                    for size in sizes:
                        beside = "two masses" if is_beside else ""
                        of_guest = (guest.model, guest.version, guest.has, beside)
                        yield isolated(Line(*of_guest, clock, size), guest, is_beside, limit)


def matrix(lines: Sequence[Line]) -> list[str]:
    """A Markdown table: FMUs by event clocks; a cell has one entry for each step size."""
    cells: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for line in lines:
        row = cells.setdefault((line.fmu, line.fmi, line.has, line.beside), {})
        row.setdefault(line.clock, []).append(line.cell)
    head = ("FMU", "FMI", "has", "beside", *CLOCKS)
    rows = (
        (*fmu, *(" / ".join(dict.fromkeys(of_clock.get(c, [""]))) for c in CLOCKS))
        for fmu, of_clock in cells.items()
    )
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def main() -> int:
    """Print a line per run; exit status 1 if one crashes or reaches the time limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="all *.fmu in it and in its subfolders are used")
    parser.add_argument("--table", type=Path, help="write TABLE.md and TABLE.csv")
    parser.add_argument(
        "--size", type=float, nargs="+", default=[0.1, 0.001], help="step sizes in s"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per run (60)")
    arguments = parser.parse_args()
    logging.getLogger("fmimaster").addHandler(logging.NullHandler())  # the table counts warnings
    lines: list[Line] = []
    for line in all_lines(arguments.folder.resolve(), arguments.size, arguments.limit):
        lines.append(line)
        print("  ".join(v for v in map(str, asdict(line).values()) if v), flush=True)
        if arguments.table:
            names = [f.name.replace("_", " ") for f in fields(Line)]
            rows = [tuple(asdict(one).values()) for one in lines]
            write_rows(names, rows, arguments.table, [*matrix(lines), ""])
    return int(any(line.outcome in ("crashed", "timed out") for line in lines))


if __name__ == "__main__":
    sys.exit(main())

"""Run every Co-Simulation FMU of a folder alone, with both backends and with fmpy, and compare the results.

    python conformance/alone.py FOLDER [--table TABLE]

Each run is a separate process with a time limit, so an FMU that crashes or does not return ends only its own run. The
table has for each FMU

* whether it ran, was refused, failed, crashed or reached the time limit, and why;
* whether native and reference gave the same bits, and made the same FMI calls with the same arguments;
* the largest difference from fmpy, relative to the largest magnitude of the output.

All runs use the same communication step size: the suggestion of the FMU, otherwise its fixed internal step, otherwise a
hundredth of the time span of its default experiment. Inputs come from a file ``<model>_in.csv`` beside the FMU. Without
this file they keep their start values; with ``--waves`` the continuous inputs follow sine waves around them. The tolerance
is that of the FMU's default experiment. FMUs with clocks run in Event Mode; with ``--event-mode``, all FMUs that have it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import zipfile
from dataclasses import replace
from math import pi, sin
from pathlib import Path
from xml.etree.ElementTree import ParseError

import facts
import recorded_calls
from compared import Line, compare
from facts import Facts
from one_run import Task, run
from tables import write_tables

import fmimaster

MOST_STEPS = 2_000
"""Longer default experiments are cut here: some FMUs suggest 1e8 s."""
MOST_LOCALS = 20
"""So many local variables are recorded of an FMU without outputs."""
PROGRAMS = ("native", "reference", "fmpy")


def examine(
    fmu: Path, name: str, limit: float, *, waves: bool = False, event_mode: bool = False
) -> Line | None:
    """Run an FMU by all three, each for at most ``limit`` seconds; None if it has no Co-Simulation.

    Parameters
    ----------
    waves : bool
        Whether continuous inputs without an input file follow sine waves.
    event_mode : bool
        Whether an FMU that has Event Mode uses it even without clocks.
    """
    try:
        of_fmu = facts.read(fmu)
    except (ValueError, OSError, zipfile.BadZipFile, ParseError) as error:
        return Line(name, note=f"it cannot be read: {error}")
    if of_fmu.identifier is None:
        return None
    with tempfile.TemporaryDirectory(prefix="alone-") as text:
        folder = Path(text)
        task = _with_inputs(of_fmu, _task(of_fmu, fmu, event_mode), folder, waves)
        line = Line(name, exporter=of_fmu.exporter, fmi=of_fmu.version, steps=task.steps)
        recorded = for_fmpy = task
        try:
            named = recorded_calls.with_named_library(fmu, folder / "named.fmu", of_fmu.identifier)
            for_fmpy = replace(task, fmu=named)
            copy = recorded_calls.record(fmu, folder / fmu.name, of_fmu.identifier)
            recorded = replace(task, fmu=copy)
        except ValueError as error:
            line = replace(line, note=f"calls not recorded: {error}")
        outcomes, calls = {}, []
        for program in PROGRAMS:
            work = folder / program
            work.mkdir()
            of_calls = work / "calls"
            outcomes[program] = run(
                program,
                for_fmpy if program == "fmpy" else recorded,
                work,
                limit,
                {recorded_calls.VARIABLE: str(of_calls)},
            )
            calls.append(recorded_calls.calls(of_calls))
        line = compare(line, task.step, outcomes, calls[:2])
        return replace(line, note=line.note.replace(f"{folder}/", ""))


def _task(of_fmu: Facts, fmu: Path, event_mode: bool) -> Task:
    steps = max(1, round((of_fmu.stop - of_fmu.start) / of_fmu.step))
    return Task(
        fmu=fmu,
        start=of_fmu.start,
        step=of_fmu.step,
        steps=min(MOST_STEPS, steps),
        outputs=_outputs(of_fmu),
        input_file=None,
        event_mode=of_fmu.has_event_mode
        and (event_mode or any(v.type == "Clock" for v in of_fmu.variables)),
        is_event_mode_asked_for=of_fmu.has_event_mode and event_mode,
    )


def _outputs(of_fmu: Facts) -> list[str]:
    """The outputs that are numbers; local variables of an FMU that has none."""
    numbers = [v for v in of_fmu.variables if v.is_number]
    outputs = [v.name for v in numbers if v.causality == "output"]
    local = [v.name for v in numbers if v.causality == "local" and v.variability != "constant"]
    return outputs or local[:MOST_LOCALS]


def _with_inputs(of_fmu: Facts, task: Task, folder: Path, waves: bool) -> Task:
    beside = task.fmu.with_name(f"{task.fmu.stem}_in.csv")
    if beside.is_file():
        return replace(task, input_file=_inputs(of_fmu, beside, folder))
    continuous = [v for v in of_fmu.variables if v.is_continuous_input]
    if not waves or not continuous:
        return task
    target = folder / "input.csv"
    with target.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["time", *(v.name for v in continuous)])
        for k in range(task.steps + 1):
            rows.writerow(
                [
                    repr(task.start + k * task.step),
                    *(repr(_wave(float(v.start), k / task.steps)) for v in continuous),
                ]
            )
    return replace(task, input_file=target)


def _wave(start: float, part: float) -> float:
    """Three periods of a sine with a tenth of the start value, at a part of the span."""
    return start + 0.1 * (abs(start) or 1.0) * sin(6.0 * pi * part)


def _inputs(of_fmu: Facts, file: Path, folder: Path) -> Path:
    """The input file without what this FMU does not have, and without 64-bit integers, which fmpy reads as floats."""
    known = {
        v.name
        for v in of_fmu.variables
        if v.causality == "input" and v.is_number and v.type not in ("Int64", "UInt64")
    }
    table = fmimaster.Results.read(file)
    target = folder / "input.csv"
    table.select([n for n in table.names if n in known]).write(target)
    return target


def main() -> int:
    """Print a line per FMU; exit status 1 if one is refused, fails, crashes, hangs, or differs between the backends."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="all *.fmu in it and in its subfolders are run")
    parser.add_argument("--table", type=Path, help="write TABLE.md and TABLE.csv")
    parser.add_argument("--only", default="", help="FMUs whose path contains this text")
    parser.add_argument(
        "--waves", action="store_true", help="let continuous inputs follow sine waves"
    )
    parser.add_argument(
        "--event-mode", action="store_true", help="use Event Mode for all FMUs that have it"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per run (60)")
    arguments = parser.parse_args()
    lines: list[Line] = []
    for fmu in sorted(arguments.folder.resolve().rglob("*.fmu")):
        name = str(fmu.relative_to(arguments.folder.resolve()))
        if arguments.only not in name:
            continue
        line = examine(
            fmu, name, arguments.limit, waves=arguments.waves, event_mode=arguments.event_mode
        )
        if line is None:
            print(f"left out  {name}: no Co-Simulation", flush=True)
            continue
        lines.append(line)
        print(line.text, flush=True)
        if arguments.table:
            write_tables(lines, arguments.table)
    return int(not all(line.is_fine for line in lines))


if __name__ == "__main__":
    sys.exit(main())

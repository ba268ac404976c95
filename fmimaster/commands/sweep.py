"""``fmimaster sweep``: run a system many times with other start values, into a Parquet data set."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmimaster.base.errors import OptionError
from fmimaster.base.installation import check_matplotlib
from fmimaster.base.text import aligned, count, section
from fmimaster.commands import settings
from fmimaster.commands.parser import group
from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import note, write, write_json
from fmimaster.configure.named import among

# imports that a help page does not need are made where they are used
if TYPE_CHECKING:
    from fmimaster.studies.sweeps.design import Choices, Design, Range
    from fmimaster.studies.sweeps.executors import SweepExecutor
    from fmimaster.studies.sweeps.sweep import SweepProgress
    from fmimaster.studies.sweeps.swept import SweptRuns

_SAMPLES = ("sobol", "lhs", "grid")
_FAILED = 1
"""Exit status if a run has failed."""
_MOST_SHOWN = 40
"""Scalars in the table."""


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, the design, and where its runs are made and kept."""
    settings.add_arguments(parser)
    add = group(parser, "Design").add_argument
    parameter = "start value that varies: LOW:HIGH, or V1,V2,... for choices; for a grid LOW:HIGH:COUNT; can be repeated"
    pair = ("NAME", "LOW:HIGH")
    add("--parameter", nargs=2, action="append", default=[], metavar=pair, help=parameter)
    sample = (
        f"{', '.join(_SAMPLES)} (default: sobol): a Sobol' sequence, a Latin hypercube, or a grid"
    )
    add("--sample", default="sobol", metavar="NAME", help=sample)
    number = "runs; of a grid, values of each parameter"
    add("-n", "--runs", type=int, metavar="N", help=number)
    add("--seed", type=int, default=0, metavar="N", help="of the sample (default: 0)")
    table = (
        "CSV file with a column for each parameter and a line for each run, in place of a sample"
    )
    add("--design", metavar="FILE", help=table)
    add = group(parser, "Results").add_argument
    folder = "folder for the data set (default: SYSTEM.sweep); if it has a part of this sweep, the others are made"
    add("--output-folder", metavar="FOLDER", help=folder)
    scalar = (
        "what is kept of each run, such as 'max(wheel.force)': first, last, min, max, peak, mean, rms, integral of "
        "columns; can be repeated (default: last(*), min(*), max(*))"
    )
    add("--scalar", action="append", default=[], metavar="TEXT", help=scalar)
    add("--rows", action="store_true", help="also keep the rows of all runs")
    figure = "figure: the scalars over the parameters, and with --rows the outputs over time: .png, .pdf or .svg"
    add("--figure", metavar="FILE", help=figure)
    add("--json", action="store_true", help="print the result as JSON")
    add = group(parser, "Processes").add_argument
    add("--workers", type=int, metavar="N", help="runs at the same time (default: one per core)")
    dask = "make the runs on a Dask cluster, by the address of its scheduler; or local: a small one on this machine"
    add("--dask", metavar="ADDRESS", help=dask)
    add = group(parser, "Messages and logs").add_argument
    add("--no-progress", action="store_true", help="do not show how far it is")


def run(arguments: Namespace) -> int:
    """Sweep, and print the ranges of the scalars; exit status 1 if a run has failed."""
    from fmimaster.studies.sweeps.scalars import USUAL
    from fmimaster.studies.sweeps.sweep import sweep

    if arguments.figure is not None:
        check_matplotlib("--figure")
        # slow to import
        from fmimaster.results.plot import check_format, save_figure

        check_format(arguments.figure)
        check_outputs(
            {"--figure": arguments.figure}, [arguments.system, arguments.input, arguments.design]
        )
    design = _design(arguments)
    folder = Path(arguments.output_folder or f"{Path(arguments.system).stem}.sweep")
    with _Shown(arguments) as shown:
        found = sweep(
            settings.simulation(arguments),
            design,
            folder,
            scalars=arguments.scalar or USUAL,
            rows=arguments.rows,
            executor=_executor(arguments),
            progress=shown,
        )
    if arguments.figure is not None:
        save_figure(found.plot(), arguments.figure)
        note(arguments, [f"figure: {arguments.figure}"])
    if arguments.json:
        write_json(facts(found))
    else:
        write(page(found))
        note(arguments, [f"data set: {folder}"])
    return _FAILED if found.failed else 0


def _executor(arguments: Namespace) -> SweepExecutor:
    from fmimaster.studies.sweeps.executors import Processes

    if arguments.dask is None:
        return Processes(arguments.workers)
    from fmimaster.studies.sweeps.on_dask import Dask

    address = None if arguments.dask == "local" else arguments.dask
    return Dask(address, arguments.workers)


def _design(arguments: Namespace) -> Design:
    from fmimaster.studies.sweeps.design import FullGrid, LatinHypercube, Sobol
    from fmimaster.studies.sweeps.design_table import DesignTable

    if arguments.design is not None:
        if arguments.parameter or arguments.runs is not None:
            raise OptionError("--design has the values of all runs. Leave --parameter and -n out.")
        return DesignTable.read(arguments.design)
    sample = among("sample", arguments.sample, _SAMPLES)
    parameters: dict[str, Range | Choices] = {}
    for name, values in arguments.parameter:
        if name in parameters:
            raise OptionError(
                f"--parameter {name}={values}: '{name}' is given twice. Give it once."
            )
        parameters[name] = _range(name, values)
    if not parameters:
        raise OptionError("The design is empty. Give --parameter NAME=LOW:HIGH, or --design FILE.")
    if sample == "grid":
        return FullGrid(parameters, n=arguments.runs)
    if arguments.runs is None:
        raise OptionError(f"--sample {sample} needs the number of runs: -n N.")
    made = Sobol if sample == "sobol" else LatinHypercube
    return made(parameters, n=arguments.runs, seed=arguments.seed)


def _range(name: str, values: str) -> Range | Choices:
    from fmimaster.studies.sweeps.design import Choices, Range

    if ":" not in values:
        return Choices(tuple(values.split(",")))
    try:
        low, high, *more = values.split(":")
        counts = [int(number) for number in more]
        if len(counts) > 1:
            raise ValueError
        return Range(float(low), float(high), *counts)
    except OptionError as error:
        raise OptionError(f"--parameter {name}={values}: {error}") from None
    except ValueError:
        raise OptionError(
            f"--parameter {name}={values}: expected LOW:HIGH, LOW:HIGH:COUNT, or V1,V2,..."
        ) from None


class _Shown:
    """On a terminal, a line that tells how far the sweep is."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        self._is_first = True
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_live = terminal and not (arguments.quiet or arguments.no_progress)

    def __call__(self, reached: SweepProgress) -> None:
        if self._is_first and reached.kept:
            kept = f"complete from before: {reached.kept} of {count(reached.total, 'run')}"
            note(self._arguments, [kept])
        self._is_first = False
        if self._is_live:
            failed = f"{reached.failed} failed" if reached.failed else ""
            left = "" if reached.remaining is None else f"{reached.remaining:.0f} s left"
            share = f"{reached.done / reached.total:4.0%}"
            parts = [f"{reached.done} of {count(reached.total, 'run')}", share, failed, left]
            self._over("  ".join(part for part in parts if part))

    def _over(self, text: str) -> None:
        from fmimaster.commands.running import over_line

        over_line(text)

    def __enter__(self) -> Callable[[SweepProgress], None]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._over("")


def page(found: SweptRuns) -> list[str]:
    """The runs, and the range of each scalar over them, as lines of text."""
    lines = [f"{count(found.runs, 'run')}, {found.failed} failed"]
    rows: list[tuple[str, ...]] = [("scalar", "smallest", "in run", "mean", "largest", "in run")]
    for name in found.scalars[:_MOST_SHOWN]:
        one = _range_of(found, name)
        if one is not None:
            rows.append(
                (name, *(f"{v:.6g}" if isinstance(v, float) else f"{v}" for v in one.values()))
            )
    if len(rows) > 1:
        lines += section("Scalars", aligned(rows))
    if len(found.scalars) > _MOST_SHOWN:
        lines.append(f"  and {len(found.scalars) - _MOST_SHOWN} more in the data set")
    return lines


def facts(found: SweptRuns) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "folder": str(found.folder),
        "runs": found.runs,
        "failed": found.failed,
        "parameters": [*found.parameters],
        "scalars": [{"name": name, **(_range_of(found, name) or {})} for name in found.scalars],
    }


def _range_of(found: SweptRuns, name: str) -> Mapping[str, float | int] | None:
    """The smallest, mean and largest value of a scalar, with their runs; None if no run has a value."""
    values = np.ma.filled(found[name], np.nan)
    present = np.flatnonzero(np.isfinite(values))
    if not len(present):
        return None
    runs, some = found["run"][present], values[present]
    return {
        "smallest": float(np.min(some)),
        "smallestRun": int(runs[np.argmin(some)]),
        "mean": float(np.mean(some)),
        "largest": float(np.max(some)),
        "largestRun": int(runs[np.argmax(some)]),
    }

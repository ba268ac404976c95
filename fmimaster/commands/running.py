"""Running a simulation from the command line: progress, clean standard output, and the rows of a failed run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from fmimaster.base.errors import FileError, SimulationError
from fmimaster.base.files import given_path, refuse_to_overwrite
from fmimaster.base.text import aligned, count, flowing, page_width
from fmimaster.commands.log import not_in_the_log
from fmimaster.commands.progress import progress
from fmimaster.commands.text import tell
from fmimaster.front.simulation import Simulation
from fmimaster.numerics.times import SLIVER
from fmimaster.results.columns import values_of
from fmimaster.results.results import Results
from fmimaster.session.work_thread import Progress

_MOST_BYTES = 8
"""Bytes of a binary that are shown."""


def simulate_and_keep(
    simulation: Simulation,
    keep: Callable[[Results], list[str]],
    *,
    show_progress: bool,
    quiet: bool = False,
    output_file: str | None = None,
    resume_from: Path | None = None,
) -> Results:
    """Simulate, pass the rows to ``keep``, and print the statistics of the run.

    Parameters
    ----------
    keep
        Writes the rows, also those of a failed run; returns lines to print.
    show_progress : bool
        Whether a bar may be shown; it is if the standard error is a terminal.
    quiet : bool
        Whether only warnings are printed.
    output_file
        CSV file that is written during the run; ``keep`` gets the last block of rows only.
    resume_from
        A checkpoint from which the run continues.

    Raises
    ------
    SimulationError
        If the simulation does; the rows are written first.
    """
    reached = _Reached()
    try:
        with progress(reached.note, show=show_progress and not quiet) as show:
            results = simulation.run(show, output_file=output_file, resume_from=resume_from)
    except SimulationError as error:
        if error.results is not None and error.results.names:
            told = keep(error.results)
            tell([] if quiet else told)
        raise
    told = keep(results)
    if quiet:
        tell(not_in_the_log(f"warning: {warning}" for warning in results.statistics.warnings))
    else:
        tell([*_summary(results, reached), *told])
    return results


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """Before a run, refuse files that cannot be written or would overwrite an input file.

    Parameters
    ----------
    outputs : option → path
    inputs : paths that are read
    """
    read = [given_path(path) for path in inputs if path]
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None or path == "-":
            continue
        if not given_path(path).absolute().parent.is_dir():
            raise FileError(
                f"'{path}' cannot be written: its folder does not exist. Create the folder first."
            )
        file = Path(path).resolve()
        if option == "--checkpoint":
            # most runs have none
            from fmimaster.session.checkpoint_file import is_checkpoint

            refuse_to_overwrite(file, read, is_ours=is_checkpoint)
        else:
            refuse_to_overwrite(file, read)
        if file.exists() and not file.is_file():  # such as /dev/null
            continue
        if file in taken:
            raise FileError(f"{option} {path} would overwrite {taken[file]}. Choose another name.")
        taken[file] = f"what {option} writes"


def ranges(results: Results) -> list[str]:
    """A line for each column: its first and last value, the smallest and the largest; and how many, if some are absent."""
    rows: list[tuple[str, ...]] = [("variable", "unit", "first", "last", "smallest", "largest", "")]
    table = results.expand()
    for name, column in table.columns.items():
        if not len(column):
            continue
        unit, values = table.units.get(name, ""), values_of(column)
        is_whole = not np.ma.isMaskedArray(column)
        present = "" if is_whole else f"in {len(values)} of {count(len(column), 'row')}"
        if not len(values):
            shown: tuple[str, ...] = ("", "", "", "")
        elif values.dtype.kind == "O":
            shown = (_short(values[0]), _short(values[-1]), "", "")
        else:
            four = (values[0], values[-1], np.min(values), np.max(values))
            shown = tuple(f"{v:.6g}" if v.dtype.kind == "f" else f"{v}" for v in four)
        rows.append((name, unit, *shown, present))
    return aligned(rows, indent="")


def _short(value: object) -> str:
    """A text in quotes; a binary as its first hexadecimal digits."""
    if not isinstance(value, bytes):
        return repr(value)
    return value.hex() if len(value) <= _MOST_BYTES else f"{value[:_MOST_BYTES].hex()}…"


class _Reached:
    """Prints notes about the end of a run, and passes the progress on."""

    def __init__(self) -> None:
        self.progress: Progress | None = None

    def note(self, progress: Progress) -> None:
        self.progress = progress


def _summary(results: Results, reached: _Reached) -> list[str]:
    lines, last = not_in_the_log(results.statistics.lines()), reached.progress
    if last is not None and last.fraction < 1.0 - SLIVER:
        lines.append(
            f"note: an FMU requested the end of the simulation at t = {last.time:.12g} s, before the stop time "
            f"{last.stop_time:.12g} s"
        )
    # lines of a log are not broken
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    return list(flowing(lines, page_width(sys.stderr))) if is_shown else lines

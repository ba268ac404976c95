"""Running a simulation from the command line: progress, standard output, rows of a failed run, the run as plain data.

The keys of the plain data are part of the interface: docs/json.md lists them.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fmimaster.base.errors import FileError, SimulationError
from fmimaster.base.files import given_path, refuse_to_overwrite
from fmimaster.base.text import aligned, count, flowing, page_width, visible
from fmimaster.commands.text import not_in_the_log, tell
from fmimaster.front.attempts import RunsForResult
from fmimaster.front.simulation import Simulation
from fmimaster.numerics.step_sizes import SLIVER
from fmimaster.results.columns import has_mask, values_of
from fmimaster.results.results import Results
from fmimaster.session.work_thread import Progress
from fmimaster.system.declarations import attribute_name

if TYPE_CHECKING:
    from fmimaster.front.accuracy_pair import Pair
    from fmimaster.results.comparison import Comparison

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
    take: Callable[[Pair], None] | None = None,
    show_rows: Callable[[Results], None] = lambda _: None,
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
    take
        Gets the run and a second one with half the steps, however long the first one took; the first one has all rows.
    show_rows
        Prints the results of a complete run, before its statistics: the last line is the error of the coupling.

    Raises
    ------
    SimulationError
        If the simulation does; the rows are written first.
    """
    reached = deque[Progress](maxlen=1)
    try:
        with progress(reached.append, show=show_progress and not quiet) as show:
            if take is None:
                results = simulation.run(show, output_file=output_file, resume_from=resume_from)
            else:
                measured = replace(simulation, error_estimate=True)
                results = RunsForResult(measured, show, take=take).run()
    except SimulationError as error:
        if error.results is not None and error.results.names:
            told = keep(error.results)
            tell([] if quiet else told)
        raise
    told = keep(results)
    show_rows(results)
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
        is_whole = not has_mask(column)
        present = "" if is_whole else f"in {len(values)} of {count(len(column), 'row')}"
        if not len(values):
            shown: tuple[str, ...] = ("", "", "", "")
        elif values.dtype.kind == "O":
            shown = (_short(values[0]), _short(values[-1]), "", "")
        else:
            four = (values[0], values[-1], np.min(values), np.max(values))
            shown = tuple(f"{v + 0.0:.6g}" if v.dtype.kind == "f" else f"{v}" for v in four)
        rows.append((name, unit, *shown, present))
    return aligned(rows, indent="")


def _short(value: object) -> str:
    """A text in quotes; a binary as its first hexadecimal digits."""
    if not isinstance(value, bytes):
        return repr(value)
    return value.hex() if len(value) <= _MOST_BYTES else f"{value[:_MOST_BYTES].hex()}…"


def _summary(results: Results, reached: Iterable[Progress]) -> list[str]:
    """Lines about a run that has ended, with the progress that it has reached, if it has told one."""
    lines = not_in_the_log(results.statistics.lines())
    lines += [
        f"note: an FMU requested the end of the simulation at t = {last.time:.12g} s, before the stop time "
        f"{last.stop_time:.12g} s"
        for last in reached
        if last.fraction < 1.0 - SLIVER
    ]
    # lines of a log are not broken
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    return list(flowing(lines, page_width(sys.stderr))) if is_shown else lines


# The run as plain data ------------------------------------------------------------------------------------------------


def run_facts(
    system: str,
    results: Results,
    files: Mapping[str, str | None],
    comparison: Comparison | None = None,
    error: SimulationError | None = None,
) -> dict[str, Any]:
    """The system, the ranges of the variables, the files, the statistics, a comparison, and the error.

    Parameters
    ----------
    files
        Kind of file → path of the written file.
    comparison
        With a reference, if there was one.
    error
        The error that ended the run.
    """
    times = results["time"]
    statistics = results.statistics
    return {
        "system": system,
        "startTime": float(times[0]) if len(times) else None,
        "endTime": float(times[-1]) if len(times) else None,
        "rows": results.rows,
        "variables": _variables(results),
        "files": dict(files),
        "statistics": {
            attribute_name(f.name): _plain(getattr(statistics, f.name))
            for f in fields(statistics)
            if f.name not in ("warnings", "notes", "rows")
        },
        "comparison": _compared(comparison),
        "metadata": {attribute_name(name): value for name, value in results.metadata.items()},
        "warnings": list(statistics.warnings),
        "notes": list(statistics.notes),
        "error": None
        if error is None
        else {"kind": type(error).__name__, "message": str(error), "time": _plain(error.time)},
    }


def _compared(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {"isWithin": comparison.is_within, **_plain(comparison)}


def _variables(results: Results) -> list[dict[str, Any]]:
    """Each column with its unit, its first, last, smallest and largest value, and in how many rows it has one."""
    table = results.expand()
    found = []
    for name, column in table.columns.items():
        values = values_of(column)
        ordered = len(values) and values.dtype.kind != "O"
        found.append(
            {
                "name": name,
                "unit": table.units.get(name),
                "first": _plain(values[0]) if len(values) else None,
                "last": _plain(values[-1]) if len(values) else None,
                "smallest": _plain(np.min(values)) if ordered else None,
                "largest": _plain(np.max(values)) if ordered else None,
                "present": len(values),
            }
        )
    return found


def _plain(value: Any) -> Any:
    """A value as JSON; a number that JSON does not have is null."""
    if is_dataclass(value):
        return {attribute_name(f.name): _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and not isfinite(value) else value


# Progress -------------------------------------------------------------------------------------------------------------

Show = Callable[[Progress], None]

_ERASE = "\r\x1b[K"
"""Moves the cursor to the start of its line, and erases the line."""


@contextmanager
def progress(note: Show, *, show: bool) -> Iterator[Show]:
    """The function that a run calls with its progress.

    Parameters
    ----------
    note
        Another function that is called with the progress.
    show : bool
        Whether the progress may be shown; it is if the standard error is a terminal.
    """
    if not (show and sys.stderr is not None and sys.stderr.isatty()):
        yield note
        return
    try:
        import rich  # noqa: F401 - slow to import, and an extra
    except ImportError:
        shown = _line()
    else:
        shown = _bar()
    with shown as shows:

        def both(reached: Progress) -> None:
            note(reached)
            shows(reached)

        yield both


def in_words(factor: float | None) -> str:
    """``"2810 x real time"``, with three digits."""
    return "" if factor is None else f"{float(f'{factor:.3g}'):g} x real time"


@contextmanager
def _line() -> Iterator[Show]:
    """One line that is overwritten again and again."""

    def show(reached: Progress) -> None:
        share, factor = f"{reached.fraction:4.0%}", reached.real_time_factor
        parts = [f"t = {reached.time:.4g} s", share, in_words(factor)]
        if reached.remaining is not None:
            parts.append(f"{reached.remaining:.0f} s left")
        over_line("  ".join(part for part in parts if part))

    try:
        yield show
    finally:
        over_line("")


def over_line(text: str) -> None:
    """Write over the last line of a terminal, which must fit; an empty text erases it."""
    if sys.stderr is not None:
        line = visible(text)[: page_width(sys.stderr) - 1]
        sys.stderr.write(f"{_ERASE}{line}")
        sys.stderr.flush()


@contextmanager
def _bar() -> Iterator[Show]:
    """A bar of rich."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("t = {task.fields[now]:.4g} s"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    # FMUs may use the standard output at this time
    bar = Bar(*columns, console=Console(stderr=True), redirect_stdout=False, transient=True)
    task = bar.add_task("", total=None, now=0.0, speed="")

    def show(reached: Progress) -> None:
        bar.start()  # not before: it starts a thread, and the run may be forked
        words = in_words(reached.real_time_factor)
        bar.update(task, completed=reached.fraction, total=1.0, now=reached.time, speed=words)

    try:
        yield show
    finally:
        bar.stop()

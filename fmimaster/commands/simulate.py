"""``fmimaster simulate``: run a system, write its results, print the statistics of the run."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fmimaster.base.collector import left_for_later
from fmimaster.base.errors import FmuLostError, Interrupted, OptionError, SimulationError
from fmimaster.base.text import aligned, count
from fmimaster.commands import settings
from fmimaster.commands.parser import group
from fmimaster.commands.text import as_a_file, note, standard_output, tell, write, write_json
from fmimaster.configure.setting_rows import ROWS
from fmimaster.results.formats import SUFFIXES

# imports that a help page does not need are made where they are used: they take 0.4 s
if TYPE_CHECKING:
    from fmimaster.front.accuracy_pair import Difference, Pair
    from fmimaster.front.simulation import Simulation
    from fmimaster.results.comparison import Comparison
    from fmimaster.results.results import Results

REFERENCE_TOLERANCE = 0.01
"""Of ``results.comparison``, which is slow to import."""


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, and the outputs."""
    settings.add_arguments(parser, {"checkpoint": _add_outputs})
    ranges = "print variables with their ranges, files, statistics, warnings and notes as JSON"
    group(parser, "Results").add_argument("--json", action="store_true", help=ranges)
    check = "simulate again with steps half as long, and print the differences of the outputs"
    group(parser, "Accuracy").add_argument("--check-step", action="store_true", help=check)
    group(parser, "Messages and logs").add_argument(
        "--no-progress", action="store_true", help="show no progress bar"
    )


def _add_outputs(parser: ArgumentParser) -> None:
    add = group(parser, "Results").add_argument
    add(
        "--output-file",
        metavar="FILE",
        help=f"file for the results: {SUFFIXES}; - for the standard output, as CSV",
    )
    add("--plot", metavar="FILE", help="figure of the results: .png, .pdf or .svg")
    add("--show-plot", action="store_true", help="show a figure of the results in a window")
    compared = (
        "results to compare with: prints the deviation of each column, and draws the reference below the results; "
        "exit status 1 if a deviation exceeds the tolerance"
    )
    add("--reference-file", metavar="FILE", help=compared)
    tolerance = (
        "largest RMS deviation from the reference, relative to the range of the reference (default: "
        f"{REFERENCE_TOLERANCE})"
    )
    add(
        "--reference-tolerance",
        type=float,
        metavar="TOL",
        help=tolerance,
    )


_BEYOND = 1
"""Exit status if the results are not within the tolerance of the reference."""


def run(arguments: Namespace) -> int:
    """Simulate; without a file for the results, print the ranges of the variables."""
    with left_for_later():
        from fmimaster.apart import shared_run
        from fmimaster.commands.running import check_outputs, ranges, simulate_and_keep
        from fmimaster.results.files import check_results_file
        from fmimaster.results.results import Results
        from fmimaster.session.own_process import reached

    _check_figures(arguments)
    # checked now: FMUs may use the standard output while they run
    arguments.to_standard_output = _is_standard_output(arguments)
    check_outputs(*_files(arguments))
    if arguments.output_file and not arguments.to_standard_output:
        check_results_file(arguments.output_file)
    file = arguments.reference_file
    arguments.reference = None if file is None else Results.read(file)
    simulation = settings.simulation(arguments)
    shared_run.is_command = arguments.process
    _refuse(arguments, simulation)
    pairs: list[Pair] = []
    try:
        results = simulate_and_keep(
            simulation,
            lambda rows: _keep(rows, arguments),
            show_progress=not arguments.no_progress,
            quiet=arguments.quiet,
            output_file=arguments.output_file if _streams(arguments) else None,
            take=pairs.append if arguments.check_step else None,
            show_rows=lambda rows: None if _shows_more(arguments) else write(ranges(rows)),
        )
    except SimulationError as error:
        if error.results is not None:
            note(arguments, largest_stable_step(simulation, error.results))
            if arguments.json:
                write_json(_facts(arguments, error.results, error))
        _tell_of_checkpoint(arguments, error)
        raise
    comparison = _comparison(results, arguments)
    if arguments.json:
        write_json(_facts(arguments, results, comparison=comparison))
    status = 0 if comparison is None or comparison.is_within else _BEYOND
    reached(shared_run.CommandPhase.ADVISING, status)
    note(arguments, largest_stable_step(simulation, results))
    if arguments.check_step:
        reached(shared_run.CommandPhase.DELIVERED)
        if results.statistics.coupling_error is None:  # there was no second run so far
            pairs.append(simulation.check_step(coarse=results))
        tell(line for pair in pairs for line in differences(pair))
    if comparison is not None and not arguments.json:
        put = tell if arguments.to_standard_output else write
        put(str(comparison).splitlines())
    if arguments.show_plot and results.rows:
        results.plot(show=True, reference=arguments.reference)
    return status


def _shows_more(arguments: Namespace) -> bool:
    """Whether something else than the ranges of the outputs was asked for."""
    file = arguments.output_file or arguments.plot or arguments.reference
    return bool(file or arguments.show_plot or arguments.json)


def _files(arguments: Namespace) -> tuple[dict[str, Any], list[Any]]:
    """Option → the file that it writes, and the files that are read."""
    files = [row for row in ROWS.values() if row.is_file]
    outputs = {
        "--output-file": arguments.output_file,
        "--plot": arguments.plot,
        **{row.spelled: getattr(arguments, row.name) for row in files if row.writes},
        "--log-file": arguments.log_file,
    }
    read = [getattr(arguments, row.name) for row in files if not row.writes]
    return outputs, [*read, arguments.reference_file]


def _tell_of_checkpoint(arguments: Namespace, error: SimulationError) -> None:
    """How an interrupted run continues; other failures would happen again."""
    file, is_outside = arguments.checkpoint, isinstance(error, Interrupted | FmuLostError)
    if file is not None and is_outside and os.path.isfile(file):
        note(arguments, [f"note: to continue from the last checkpoint: fmimaster resume {file}"])


def _refuse(arguments: Namespace, simulation: Simulation) -> None:
    """Raise if options exclude each other."""
    if arguments.json and arguments.to_standard_output:
        raise OptionError(
            "--json and --output-file - both write to the standard output. Write the results to a file."
        )
    if arguments.reference_tolerance is not None and arguments.reference_file is None:
        raise OptionError(
            "--reference-tolerance needs --reference-file, the results to compare with."
        )
    if arguments.checkpoint_interval is not None and arguments.checkpoint is None:
        raise OptionError("--checkpoint-interval needs --checkpoint, the file for the checkpoints.")
    if arguments.check_step and arguments.output_interval:
        raise OptionError(
            "--check-step compares the rows at all communication points. Leave --output-interval out."
        )
    if arguments.check_step and simulation.accuracy is not None:
        raise OptionError(
            "--accuracy halves the steps already, and a note states the error. Leave --check-step out."
        )


def _check_figures(arguments: Namespace) -> None:
    """Check that the file for the figure can be written, and that a window can be opened."""
    from fmimaster.base.installation import check_matplotlib

    if arguments.plot:
        check_matplotlib("--plot")
        from fmimaster.results.plot import check_format

        check_format(arguments.plot)
    if arguments.show_plot:
        check_matplotlib("--show-plot")
        from fmimaster.results.notebook import check_window

        check_window()


def _comparison(results: Results, arguments: Namespace) -> Comparison | None:
    """The comparison with the reference, if there is one."""
    if arguments.reference is None:
        return None
    given = arguments.reference_tolerance
    tolerance = REFERENCE_TOLERANCE if given is None else given
    return results.compare(arguments.reference, tolerance=tolerance)


def _facts(
    arguments: Namespace,
    results: Results,
    error: SimulationError | None = None,
    comparison: Comparison | None = None,
) -> dict[str, Any]:
    from fmimaster.commands.running import run_facts

    files = {"results": arguments.output_file, "figure": arguments.plot}
    written = {what: path if results.rows else None for what, path in files.items()}
    return run_facts(arguments.system, results, written, comparison, error)


def _streams(arguments: Namespace) -> bool:
    """Whether rows are written to the file during the run: only if nothing else needs them, and the file is not the
    standard output, which FMUs may use until the end."""
    drawn = arguments.plot or arguments.show_plot
    shown = arguments.to_standard_output or arguments.json or arguments.reference
    needed = drawn or shown or arguments.check_step
    return bool(arguments.output_file) and not needed


def _is_standard_output(arguments: Namespace) -> bool:
    """Whether the file is the standard output, also by a name such as /dev/stdout."""
    if not arguments.output_file or arguments.output_file == "-":
        return bool(arguments.output_file)
    with suppress(OSError, ValueError):  # a new file, no path, or a closed standard output
        return os.path.samestat(os.stat(arguments.output_file), os.fstat(1))
    return False


def _keep(results: Results, arguments: Namespace) -> list[str]:
    """Write the requested files; returns lines to print about them."""
    from fmimaster.results.csv import write_csv
    from fmimaster.results.facts import facts_path
    from fmimaster.results.files import write_table

    told = []
    # all of them; `results` may have only those that are not in the file
    rows = results.statistics.rows
    if arguments.output_file and not rows:
        pass  # an older file stays
    elif arguments.output_file and arguments.to_standard_output:
        with standard_output() as output:
            write_csv(results, as_a_file(output))
    elif arguments.output_file:
        if not _streams(arguments):
            write_table(results, arguments.output_file)
        facts = facts_path(arguments.output_file)
        beside = f" and {facts.name}" if facts.is_file() else ""
        told.append(f"{count(rows, 'row')} written to {arguments.output_file}{beside}")
    if arguments.plot and results.rows:
        from fmimaster.results.plot import plot_results, save_figure

        save_figure(plot_results(results, reference=arguments.reference), arguments.plot)
        told.append(f"figure written to {arguments.plot}")
    return told


MOST_LINES = 20
"""Outputs that are shown: those that differ most."""

LEAST_SECONDS = 2.0
"""CPU time in s that the search for the largest stable step may take after a short run."""


def differences(pair: Pair) -> list[str]:
    """Differences of the outputs from a run with steps half as long, one line each."""
    found = pair.differences()
    rows: list[tuple[str, ...]] = [
        ("output", "unit", "largest difference", "at", "of its largest value")
    ]
    rows += [_row(difference) for difference in found[:MOST_LINES]]
    more = len(found) - MOST_LINES
    lines = ["with steps half as long:", *aligned(rows)]
    return [*lines, f"  and {more} more outputs that differ less"] if more > 0 else lines


def _row(d: Difference) -> tuple[str, ...]:
    share = d.largest / d.scale if d.scale else 0.0
    return d.name, d.unit, f"{d.largest:.3g}", f"{d.time:.6g} s", f"{share:.2%}"


def largest_stable_step(simulation: Simulation, results: Results) -> Iterator[str]:
    """The largest stable step size of the coupling, if an output of a run has grown without bound.

    The search takes no longer than the run, or :data:`LEAST_SECONDS`. Ctrl-C ends it; the results are written already.
    """
    statistics = results.statistics
    if not statistics.diverging:
        return
    from fmimaster.studies.stability.advisor import largest_stable_step

    seconds = max(LEAST_SECONDS, statistics.seconds + statistics.start_seconds)
    yield f"note: looking for the largest stable step size, for at most {seconds:.3g} s (Ctrl-C ends it)"
    try:
        step = largest_stable_step(simulation, seconds)
    except KeyboardInterrupt:
        yield "note: the search was ended; 'fmimaster stability' repeats it"
        return
    if step is None:
        yield (
            "note: no largest stable step size was found for sure. If outputs grow as much with half the step size "
            "(--check-step), the model itself is unstable"
        )
        return
    stable = f"note: the coupling is stable with steps of at most {step:.6g} s"
    if step < float(simulation.prepare().schedule.rule.exact_size):
        yield stable
        return
    yield (
        f"{stable} near the start, and the steps of the run are not longer: the model itself is unstable, or the "
        "coupling becomes unstable later (fmimaster stability --at)"
    )

"""``fmimaster simulate``: its options. A help page imports nothing else."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fmimaster.commands import settings
from fmimaster.commands.parser import group
from fmimaster.results.formats import SUFFIXES

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


def run(arguments: Namespace) -> int:
    """Simulate; without a file for the results, print the ranges of the variables."""
    from fmimaster.commands import simulate_run  # takes 0.4 s

    return simulate_run.run(arguments)

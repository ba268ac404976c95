"""``fmimaster conformance``: its options. A help page imports nothing else."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fmimaster.commands.parser import group
from fmimaster.configure.named import SOLVERS

# of conformance.run and conformance.measures, which are slow to import; tests/unit/test_named.py compares them
CONFORMANCE_DEADLINE = 60.0
"""[s]"""
CONFORMANCE_OUTPUT = "conformance-results"
"""Folder."""
OUTSIDE_BAND = 0.1
"""Share of samples."""


def add_arguments(parser: ArgumentParser) -> None:
    """The folder, and how its FMUs are run and compared."""
    add = parser.add_argument
    folder = (
        "folder with FMUs, in the layout of the FMI cross-check or in any other one; with --compare the output folders "
        "of an old and a new run"
    )
    add("folders", nargs="+", metavar="FOLDER", help=folder)
    output = f"folder for verdicts, report and results (default: {CONFORMANCE_OUTPUT})"
    add("--output-folder", metavar="FOLDER", default=CONFORMANCE_OUTPUT, help=output)
    only = "run only FMUs whose path in the folder fits; can be repeated"
    add("--only", action="append", default=[], metavar="GLOB", help=only)
    interface = (
        "run FMUs by this interface only: co-simulation, model-exchange, scheduled-execution"
    )
    add("--interface", metavar="NAME", help=interface)
    solver = f"solver of Model Exchange FMUs: {', '.join(SOLVERS)} (default: dormand-prince)"
    add("--solver", metavar="NAME[:KEY=VALUE,...]", help=solver)
    again = parser.add_mutually_exclusive_group().add_argument
    again("--again", action="store_true", help="run all FMUs, also those that have a verdict")
    again("--retry", action="store_true", help="run the FMUs that have not passed")
    cards = "also measure each FMU as 'fmimaster probe' does; its card is in the report"
    add("--cards", action="store_true", help=cards)
    add("--json", action="store_true", help="print the verdicts as JSON")
    compare = "show what has changed between two runs: --compare OLD NEW"
    add("--compare", action="store_true", help=compare)
    verdicts = (
        "run all FMUs again, and show what differs from the verdicts that are recorded in this file"
    )
    add("--verdicts", metavar="FILE", help=verdicts)
    record = "with --verdicts: write the verdicts into that file in the end"
    add("--record", action="store_true", help=record)
    page = "with --compare: file for the changes as an HTML page"
    add("--html", metavar="FILE", help=page)
    add = group(parser, "Processes").add_argument
    add("--workers", type=int, metavar="N", help="FMUs at the same time (default: one per core)")
    deadline = f"time in s after which an FMU is ended (default: {CONFORMANCE_DEADLINE:g})"
    add(
        "--deadline",
        type=float,
        default=CONFORMANCE_DEADLINE,
        metavar="SECONDS",
        help=deadline,
    )
    memory = "bytes that each FMU can allocate in its process, such as 2e9"
    add("--memory-limit", type=float, metavar="BYTES", help=memory)
    add = group(parser, "Comparison with references").add_argument
    outside = (
        f"largest share of samples outside the band of the cross-check (default: {OUTSIDE_BAND:g})"
    )
    add("--outside", type=float, metavar="SHARE", help=outside)
    rms = "largest RMS deviation, relative to the range of the reference (default: no limit)"
    add("--relative-rms", type=float, metavar="TOL", help=rms)
    largest = "largest deviation, relative to the range of the reference (default: no limit)"
    add("--largest", type=float, metavar="TOL", help=largest)
    jumps = "largest difference in s of the time of an event (default: no limit)"
    add("--jump-time", type=float, metavar="SECONDS", help=jumps)
    add = group(parser, "Messages and logs").add_argument
    add("--no-progress", action="store_true", help="do not show which FMUs are running")


def run(arguments: Namespace) -> int:
    """Run the FMUs; exit status 1 if one has failed, or differs from what is recorded."""
    from fmimaster.commands import conformance_run  # takes 0.4 s

    return conformance_run.run(arguments)

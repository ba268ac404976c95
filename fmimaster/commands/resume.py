"""``fmimaster resume``: a run that was ended continues from its last checkpoint."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import Any

from fmimaster.commands.parser import group


def add_arguments(parser: ArgumentParser) -> None:
    """The checkpoint, and the file for the results."""
    text = "the file that --checkpoint of simulate named; the file with its rows must be beside it"
    parser.add_argument("checkpoint", metavar="FILE", help=text)
    add = group(parser, "Results").add_argument
    output = (
        "file for the results of the whole run: .csv, .parquet, .h5 or .mat (default: the file of the run that was "
        "ended, if it wrote one during the run)"
    )
    add("--output-file", metavar="FILE", help=output)
    ranges = "print variables with their ranges, files, statistics, warnings and notes as JSON"
    add("--json", action="store_true", help=ranges)
    add("--no-progress", action="store_true", help="show no progress bar")


def run(arguments: Namespace) -> int:
    """Continue the run; without a file for the results, print the ranges of the variables."""
    # they take 0.4 s
    from fmimaster.checkpoint.file import CheckpointFile
    from fmimaster.commands.run_facts import run_facts
    from fmimaster.commands.running import check_outputs, ranges, simulate_and_keep
    from fmimaster.commands.text import write, write_json
    from fmimaster.errors import SimulationError
    from fmimaster.given_path import given_path
    from fmimaster.results.files import check_results_file
    from fmimaster.results.results import Results
    from fmimaster.session.origin import settings_in
    from fmimaster.simulation import Simulation
    from fmimaster.text import count

    path = given_path(arguments.checkpoint).absolute()
    file = CheckpointFile.read(path)
    simulation = settings_in(path, file, Simulation)
    output = arguments.output_file or file.output_file or None
    check_outputs({"--output-file": output, "--log-file": arguments.log_file}, [str(path)])
    if output:
        check_results_file(output)

    def keep(results: Results) -> list[str]:
        return [f"{count(results.statistics.rows, 'row')} written to {output}"] if output else []

    def facts(results: Results, error: SimulationError | None = None) -> dict[str, Any]:
        system = simulation.system
        name = os.fspath(system) if isinstance(system, str | os.PathLike) else str(system)
        return run_facts(name, results, {"results": output, "figure": None}, None, error)

    try:
        results = simulate_and_keep(
            simulation,
            keep,
            show_progress=not arguments.no_progress,
            quiet=arguments.quiet,
            output_file=output,
            resume_from=path,
        )
    except SimulationError as error:
        if error.results is not None and arguments.json:
            write_json(facts(error.results, error))
        raise
    if arguments.json:
        write_json(facts(results))
    elif not output:
        write(ranges(results))
    return 0

"""``fmimaster resume``: a run that was ended continues from its last checkpoint."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmimaster.commands.parser import group
from fmimaster.results.formats import SUFFIXES

if TYPE_CHECKING:
    from fmimaster.front.simulation import Simulation


def add_arguments(parser: ArgumentParser) -> None:
    """The checkpoint, and the file for the results."""
    text = "the file that --checkpoint of simulate named; the file with its rows must be beside it"
    parser.add_argument("checkpoint", metavar="FILE", help=text)
    add = group(parser, "Results").add_argument
    output = (
        f"file for the results of the whole run: {SUFFIXES} (default: beside the checkpoint, with the name of the "
        "file that the run wrote)"
    )
    add("--output-file", metavar="FILE", help=output)
    states = (
        "file for the FMU states at the end, if the run writes them (default: CHECKPOINT.states)"
    )
    add("--final-fmu-state-file", metavar="FILE", help=states)
    calls = "file for the log of FMI calls, if the run writes one (default: CHECKPOINT.calls.log)"
    add("--fmi-log-file", metavar="FILE", help=calls)
    ranges = "print variables with their ranges, files, statistics, warnings and notes as JSON"
    add("--json", action="store_true", help=ranges)
    add("--no-progress", action="store_true", help="show no progress bar")


def run(arguments: Namespace) -> int:
    """Continue the run; without a file for the results, print the ranges of the variables."""
    # they take 0.4 s
    from fmimaster.base.errors import SimulationError
    from fmimaster.base.files import given_path
    from fmimaster.base.text import count
    from fmimaster.commands.running import check_outputs, ranges, run_facts, simulate_and_keep
    from fmimaster.commands.text import write, write_json
    from fmimaster.results.files import check_results_file
    from fmimaster.results.results import Results

    path = given_path(arguments.checkpoint).absolute()
    simulation, output = _continued(arguments, path)
    outputs = {
        "--output-file": output,
        "--fmi-log-file": arguments.fmi_log_file,
        "--log-file": arguments.log_file,
    }
    check_outputs(outputs, [str(path)])
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


def _continued(arguments: Namespace, path: Path) -> tuple[Simulation, str | None]:
    """The simulation that the checkpoint belongs to, and the file for its results."""
    from fmimaster.apart import shared_run
    from fmimaster.front.simulation import Simulation
    from fmimaster.session.checkpoint_file import CheckpointFile
    from fmimaster.session.origin import results_beside, settings_in

    file = CheckpointFile.read(path)
    written = {
        "fmi_log_file": arguments.fmi_log_file,
        "final_fmu_state": arguments.final_fmu_state_file,
    }
    simulation = settings_in(path, file, Simulation, **written)
    simulation = replace(simulation, process=arguments.process)
    shared_run.is_command = arguments.process
    output: str | None = arguments.output_file
    if output is None and (beside := results_beside(path, file)) is not None:
        output = str(beside)
    return simulation, output

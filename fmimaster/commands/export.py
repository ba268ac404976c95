"""``fmimaster export``: a system as an FMU that runs without Python."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from fmimaster.commands import settings
from fmimaster.commands.text import write, write_json
from fmimaster.system.declarations import to_json


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, and the FMU."""
    settings.add_arguments(parser)
    add = parser.add_argument
    add("--output-file", "-o", metavar="FILE", required=True, help="the FMU to be written")
    add("--fmi-version", type=int, default=3, metavar="N", help="2 or 3 (default: %(default)s)")
    add("--json", action="store_true", help="print what was written as JSON")


def run(arguments: Namespace) -> int:
    """Write the FMU, and print what it is."""
    simulation = settings.simulation(arguments)
    exported = simulation.export(arguments.output_file, fmi_version=arguments.fmi_version)
    if arguments.json:
        write_json({**to_json(exported), "path": str(exported.path)})
    else:
        write(str(exported).splitlines())
    return 0

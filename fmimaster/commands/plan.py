"""``fmimaster plan``: the order in which a system is computed, the delay of each connection, events and programs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from fmimaster.base.given_path import given_path
from fmimaster.base.optional import drawing
from fmimaster.commands import compare, settings
from fmimaster.commands.text import note, write, write_json
from fmimaster.pages.plan import page


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, and the form of the answer."""
    settings.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    programs = "also print the instructions of all programs"
    parser.add_argument("--programs", action="store_true", help=programs)
    sequences = (
        "simulate the sequences of several methods, and print predicted and simulated differences"
    )
    parser.add_argument("--compare", action="store_true", help=sequences)
    figure = "draw components, connections, loops and levels: .png, .pdf or .svg"
    parser.add_argument("--figure", metavar="FILE", help=figure)


def run(arguments: Namespace) -> int:
    """Print the plan; libraries are loaded only for a comparison."""
    simulation = settings.simulation(arguments)
    facts = simulation.plan(programs=arguments.programs).facts
    lines = page(facts)
    if arguments.compare:
        facts["comparison"] = compare.comparison(simulation)
        lines += compare.page(facts["comparison"])
    keep = None if arguments.figure is None else _figure(arguments, facts)
    if arguments.json:
        write_json(facts)
    else:
        write(lines)
    if keep is not None:
        keep()
    return 0


def _figure(arguments: Namespace, facts: dict[str, Any]) -> Callable[[], None]:
    """Draw the plan; returns a function that writes the figure."""
    drawing("--figure")
    from fmimaster.commands.plan_figure import plan_figure  # matplotlib is slow to import
    from fmimaster.results.plot import check_format, save_figure

    path = given_path(arguments.figure)
    check_format(path)
    figure = plan_figure(facts)

    def keep() -> None:
        save_figure(figure, path)
        note(arguments, [f"figure written to {path}"])

    return keep

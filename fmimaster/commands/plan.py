"""``fmimaster plan``: the order in which a system is computed, the delay of each connection, events and programs."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from fmimaster.base.files import given_path
from fmimaster.base.installation import check_matplotlib
from fmimaster.base.text import aligned, flowing, section
from fmimaster.commands import settings
from fmimaster.commands.optimize import candidate_facts, number, searched, told
from fmimaster.commands.text import note, write, write_json
from fmimaster.configure.named import setting_text
from fmimaster.front.simulation import Simulation
from fmimaster.pages.plan import page
from fmimaster.studies.optimization.comparison import (
    PRESENT,
    ComparedSequence,
    compare,
    compromises,
)
from fmimaster.studies.optimization.sequence_search import SequenceSearch
from fmimaster.studies.optimization.signature import Signature


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
        facts["comparison"] = comparison(simulation)
        lines += comparison_page(facts["comparison"])
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
    check_matplotlib("--figure")
    from fmimaster.commands.plan_figure import plan_figure  # matplotlib is slow to import
    from fmimaster.results.plot import check_format, save_figure

    path = given_path(arguments.figure)
    check_format(path)
    figure = plan_figure(facts)

    def keep() -> None:
        save_figure(figure, path)
        note(arguments, [f"figure written to {path}"])

    return keep


def comparison(simulation: Simulation) -> dict[str, Any]:
    """Simulate sequences, and return the results as plain data."""
    search = SequenceSearch(simulation, Signature(), tell=told())
    rows = searched(search, lambda: compare(search))
    cores = simulation.threads or os.cpu_count() or 1
    seconds = search.runs.seconds
    found = compromises(search.prepared.plan, search.groups, seconds, cores) if cores > 1 else ()
    return {
        "algorithm": setting_text(search.runs.algorithm),
        "sequences": [_compared(row) for row in rows],
        "threads": cores,
        "compromises": [
            {"levels": [list(k) for k in c.levels], "cost": c.cost, "seconds": c.seconds}
            for c in found
        ],
    }


def _compared(row: ComparedSequence) -> dict[str, Any]:
    return {
        **candidate_facts(row.candidate),
        "sequence": list(row.components),
        "methods": list(row.methods),
        "staleInputs": row.stale,
        "feedThroughCost": row.feed_through,
    }


def comparison_page(facts: Mapping[str, Any]) -> list[str]:
    """The section of the plan's page."""
    heads = ("sequence", "stale", "feed-", "error", "", "change", "", "chosen by")
    below = ("", "", "through", "pred.", "sim.", "pred.", "sim.", "")
    rows = [
        (
            ", ".join(row["sequence"]),
            f"{row['staleInputs']:g}",
            f"{row['feedThroughCost']:.3g}",
            *(number(row[key]) for key in _NUMBERS),
            ", ".join(row["methods"]),
        )
        for row in facts["sequences"]
    ]
    explained = (
        "  Error: difference from results that are extrapolated to the step size 0. Change: difference from the "
        "results with "
        f"the present sequence ('{PRESENT}'). Both are predicted (pred.) and simulated (sim.), relative to the size "
        "of the "
        "outputs."
    )
    return [
        *section(f"Sequences compared ({facts['algorithm']})", aligned([heads, below, *rows])),
        *flowing([explained]),
        *_compromises(facts),
    ]


def _compromises(facts: Mapping[str, Any]) -> list[str]:
    if not facts["compromises"]:
        return []
    rows = [
        ("; ".join(map(", ".join, c["levels"])), f"{c['cost']:.4g}", f"{c['seconds'] * 1e6:.4g} us")
        for c in facts["compromises"]
    ]
    title = f"Compromises of stale inputs and speed on {facts['threads']} threads, as measured"
    heads = ("levels (--levels)", "feed-through", "FMUs, per step")
    return [
        *section(title, aligned([heads, *rows])),
        "  No other sequence has both fewer stale inputs and faster steps.",
    ]


_NUMBERS = ("predictedError", "error", "predictedDifference", "difference")

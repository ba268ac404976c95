"""``fmimaster probe``: what an FMU really does, beside what it declares."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fmimaster.cards.card import DEADLINE
from fmimaster.cards.findings import TITLES, differences
from fmimaster.commands.text import write, write_json
from fmimaster.system.declarations import to_json


def add_arguments(parser: ArgumentParser) -> None:
    """The FMU, the form of the output, and how it is measured."""
    parser.add_argument("path", metavar="FMU", help="an FMU, or the folder of an unpacked one")
    parser.add_argument("--all", action="store_true", help="show long lists in full")
    parser.add_argument("--json", action="store_true", help="print the card as JSON")
    parser.add_argument(
        "--output-file", metavar="FILE", help="also write the card to a file, as JSON"
    )
    parser.add_argument(
        "--interface",
        metavar="NAME",
        help="CoSimulation, ModelExchange or ScheduledExecution (default: the first that the FMU has)",
    )
    parser.add_argument(
        "--deadline",
        type=float,
        default=DEADLINE,
        metavar="SECONDS",
        help="wall time after which a measurement is ended (default: %(default)g)",
    )
    parser.add_argument(
        "--again", action="store_true", help="measure the FMU again, also if it has a card"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write cards in the cache folder"
    )


def run(arguments: Namespace) -> int:
    """Measure the FMU, and print its card."""
    from fmimaster.studies.probing.page import card_page  # a help page needs none of these
    from fmimaster.studies.probing.probe import probe

    with _progress() as show:
        card = probe(
            arguments.path,
            interface=arguments.interface,
            deadline=arguments.deadline,
            use_cache=not arguments.no_cache,
            again=arguments.again,
            progress=show,
        )
    if arguments.output_file is not None:
        card.write(arguments.output_file)
    if arguments.json:
        found = [to_json(d) for d in differences(card)]
        write_json({**card.to_json(), "differences": found})
    else:
        write(card_page(card, whole=arguments.all))
    return 0


@contextmanager
def _progress() -> Iterator[Callable[[str], None] | None]:
    """Shows the present measurement in one line that is overwritten, if the standard error is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return

    from fmimaster.commands.running import over_line  # a help page does not need it

    try:
        yield lambda measurement: over_line(f"{TITLES[measurement]} ...")
    finally:
        over_line("")

"""``fmimaster demo``: run a system that is ready, write a table and a figure."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fmimaster.commands.running import simulate_and_keep
from fmimaster.commands.text import aligned, count, write
from fmimaster.demos import DEMOS, Demo, demo
from fmimaster.errors import FileError
from fmimaster.results.csv import write_csv
from fmimaster.results.results import Results

HELP = "Run a ready-made system, write CSV and PNG; without a name, list them."


def add_arguments(parser: ArgumentParser) -> None:
    """Which one, and where to."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="which one; without it, all are listed")
    add(
        "--output-directory",
        metavar="DIR",
        default=".",
        help="folder for the files (made if needed)",
    )
    add("--no-progress", action="store_true", help="show no progress bar")


def run(arguments: Namespace) -> int:
    """Run one, or list them."""
    if arguments.name is None:
        write(aligned([(one.name, one.title) for one in DEMOS], indent=""))
        return 0
    chosen = demo(arguments.name)
    folder = Path(arguments.output_directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"Folder '{folder}' cannot be made: {error.strerror}. Choose another."
        ) from error
    write([f"{chosen.title}.", chosen.text])
    simulate_and_keep(
        chosen.simulation(),
        lambda results: _keep(results, chosen, folder),
        show_progress=not arguments.no_progress,
    )
    return 0


def _keep(results: Results, chosen: Demo, folder: Path) -> list[str]:
    """Write table and figure; returns where they are."""
    from fmimaster.results.plot import save_figure  # matplotlib is slow to import

    table, picture = folder / f"{chosen.name}.csv", folder / f"{chosen.name}.png"
    write_csv(results, table)
    told = [f"{count(len(results), 'row')} written to {table}"]
    if len(results):
        figure = results.plot(chosen.columns, title=chosen.title)
        chosen.draw(figure, results)
        save_figure(figure, picture)
        told.append(f"figure written to {picture}")
    return told

"""``fmimaster plot``: figures of results that are files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import write
from fmimaster.errors import FileError
from fmimaster.given_path import given_path
from fmimaster.results.csv import read_csv


def add_arguments(parser: ArgumentParser) -> None:
    """The files, and what to draw."""
    add = parser.add_argument
    add("files", nargs="+", metavar="RESULT.csv", help="results of simulate")
    add(
        "--output-file",
        metavar="FILE",
        help=".png, .pdf or .svg; beside the first CSV file as .png, if left out",
    )
    add("--variable", action="append", metavar="GLOB", help="columns to draw; can be repeated")
    add("--communication-points", action="store_true", help="mark the rows by ticks")
    add("--title", metavar="TEXT", help="title of the figure")


def run(arguments: Namespace) -> int:
    """Draw, write, and say where."""
    # matplotlib is slow to import
    from fmimaster.results.plot import check_format, plot_results, save_figure

    files = [given_path(file) for file in arguments.files]
    output = _output(arguments.output_file, files[0])
    check_format(output)
    check_outputs({"--output-file": str(output)}, [str(file) for file in files])
    tables = [(file.stem if len(files) > 1 else "", read_csv(file)) for file in files]
    figure = plot_results(
        tables,
        arguments.variable,
        communication_points=arguments.communication_points,
        title=arguments.title,
    )
    save_figure(figure, output)
    write([f"figure written to {output}"])
    return 0


def _output(given: str | None, first: Path) -> Path:
    """The file for the figure."""
    if given is not None:
        return given_path(given)
    if not first.name:
        raise FileError(f"'{first}' is a folder. Give the CSV file in it.")
    return first.with_suffix(".png")

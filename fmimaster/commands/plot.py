"""``fmimaster plot``: figures of results in files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fmimaster.base.errors import FileError
from fmimaster.base.files import given_path
from fmimaster.base.installation import check_matplotlib
from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import write
from fmimaster.results.results import Results


def add_arguments(parser: ArgumentParser) -> None:
    """The files, and what to draw."""
    add = parser.add_argument
    add("files", nargs="+", metavar="RESULT", help="files with results of simulate")
    output = "file for the figure: .png, .pdf or .svg (default: a .png beside the first file)"
    add("--output-file", metavar="FILE", help=output)
    show = "show the figure in a window; it is written only if --output-file is given"
    add("--show-plot", action="store_true", help=show)
    add("--variable", action="append", metavar="GLOB", help="columns to draw; can be repeated")
    add("--communication-points", action="store_true", help="mark the times of the rows by ticks")
    add("--title", metavar="TEXT", help="title of the figure")


def run(arguments: Namespace) -> int:
    """Draw the figure, and write or show it."""
    check_matplotlib("'fmimaster plot'")
    # matplotlib is slow to import
    from fmimaster.results.notebook import check_window, maker_of_figures, show_figure
    from fmimaster.results.plot import check_format, plot_results, save_figure

    files = [given_path(file) for file in arguments.files]
    output = _output(arguments, files[0])
    if output is not None:
        check_format(output)
        check_outputs({"--output-file": str(output)}, [str(file) for file in files])
    if arguments.show_plot:
        check_window()
    tables = [(file.stem if len(files) > 1 else "", Results.read(file)) for file in files]
    figure = plot_results(
        tables,
        arguments.variable,
        communication_points=arguments.communication_points,
        title=arguments.title,
        new_figure=maker_of_figures(arguments.show_plot),
    )
    if output is not None:
        save_figure(figure, output)
        write([f"figure written to {output}"])
    if arguments.show_plot:
        show_figure(figure)
    return 0


def _output(arguments: Namespace, first: Path) -> Path | None:
    """The file for the figure; None if it is only shown."""
    if arguments.output_file is not None:
        return given_path(arguments.output_file)
    if not first.name:
        raise FileError(f"'{first}' is a folder. Give a file with results in it.")
    return None if arguments.show_plot else first.with_suffix(".png")

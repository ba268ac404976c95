"""``fmimaster demo``: run a ready-made system, write tables and figures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial

from fmimaster.base.errors import FileError, OptionError, did_you_mean
from fmimaster.base.files import given_path
from fmimaster.base.text import aligned, paragraph
from fmimaster.commands.running import simulate_and_keep
from fmimaster.commands.text import note, write
from fmimaster.studies.demos.catalogue import DEMOS, Demo, demo
from fmimaster.studies.demos.stage import Stage


def add_arguments(parser: ArgumentParser) -> None:
    """The demo, and the folder for its files."""
    add = parser.add_argument
    add(
        "name", nargs="?", metavar="NAME", help="name of the demo; without it, all demos are listed"
    )
    add(
        "--output-directory",
        metavar="DIR",
        default=".",
        help="folder for the files (created if needed)",
    )
    add(
        "--fmus",
        metavar="VERSION",
        help="version of the FMUs, for example fmi2; for demos that have several",
    )
    add("--no-progress", action="store_true", help="show no progress bar")


def run(arguments: Namespace) -> int:
    """Run a demo, or list all demos."""
    if arguments.name is None:
        write(aligned([(one.name, one.title) for one in DEMOS], indent=""))
        return 0
    chosen = demo(arguments.name)
    version = _version(chosen, arguments.fmus)
    folder = given_path(arguments.output_directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"Folder '{folder}' cannot be created: {error.strerror}. Choose another."
        ) from error
    write([*paragraph(f"{chosen.title}."), *paragraph(chosen.text)])
    progress = {"show_progress": not arguments.no_progress, "quiet": arguments.quiet}
    chosen.show(
        Stage(
            folder,
            version,
            simulate=partial(simulate_and_keep, **progress),
            print=lambda rows: write(["", *aligned(rows, indent=""), ""]),
            tell=partial(note, arguments),
        )
    )
    return 0


def _version(chosen: Demo, version: str | None) -> str:
    if version is None:
        return chosen.versions[0] if chosen.versions else ""
    if not chosen.versions:
        raise OptionError(f"Demo '{chosen.name}' has only one version. Omit --fmus.")
    if version not in chosen.versions:
        raise OptionError(
            f"--fmus {version}: expected {', '.join(chosen.versions)}.{did_you_mean(version, chosen.versions)}"
        )
    return version

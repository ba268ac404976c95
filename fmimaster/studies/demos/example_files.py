"""The files of the examples in the documentation, written to the user's folder."""

from __future__ import annotations

import filecmp
import shutil
from dataclasses import dataclass
from pathlib import Path

from fmimaster.base.errors import FileError
from fmimaster.base.installation import reference_path
from fmimaster.studies.demos.stage import Stage


@dataclass(frozen=True)
class ExampleFile:
    """A copy of a reference file."""

    name: str
    """Its name on the pages of the documentation."""
    reference: str
    """For :func:`fmimaster.reference_path`."""
    text: str
    """Its description in one line."""


EXAMPLE_FILES = (
    ExampleFile("Dahlquist.fmu", "fmi3/Dahlquist.fmu", "x' = -k x + u, with input u and output x"),
    ExampleFile(
        "Feedthrough.fmu", "fmi3/Feedthrough.fmu", "inputs of all types, each copied to an output"
    ),
    ExampleFile("BouncingBall.fmu", "fmi2/BouncingBall.fmu", "a ball that bounces on the floor"),
    ExampleFile("Faulty.fmu", "fmi3/Faulty.fmu", "an FMU with faults that its parameters select"),
    ExampleFile(
        "two-mass.ssp",
        "systems/two-mass-b3-mixed.ssp",
        "two blocks on springs that collide, 20 s, FMI 2.0 and 3.0",
    ),
    ExampleFile(
        "thermostat.ssp", "systems/thermostat-fmi2.ssp", "a room and the controller of its heater"
    ),
    ExampleFile("four-units.ssp", "systems/four-units-fmi3.ssp", "four units in a closed loop"),
    ExampleFile(
        "quarter-car-a.ssp",
        "systems/quarter-car-a-fmi3.ssp",
        "chassis and wheel with a power bond; the wheel has the suspension",
    ),
    ExampleFile(
        "quarter-car-b.ssp",
        "systems/quarter-car-b-fmi2.ssp",
        "the same; the chassis has the suspension",
    ),
)


@dataclass(frozen=True)
class FilesDemo:
    """Writes the example files."""

    name: str = "files"
    title: str = "The FMUs and systems of the examples in the documentation, written to files"
    text: str = "The examples in the documentation use these files."
    versions: tuple[str, ...] = ()

    def show(self, stage: Stage) -> None:
        """Write all files that do not exist yet.

        Raises
        ------
        FileError
            If a file of that name with other content exists, or a file cannot be written.
        """
        sources = {file: reference_path(file.reference) for file in EXAMPLE_FILES}
        for file, source in sources.items():
            target = stage.folder / file.name
            if target.exists() and not filecmp.cmp(source, target, shallow=False):
                raise FileError(
                    f"File '{target}' exists and is not the example file, so nothing was written. Remove it, or "
                    "choose another folder with --output-directory."
                )
        for file, source in sources.items():
            _copy(source, stage.folder / file.name)
        stage.print([(file.name, file.text) for file in EXAMPLE_FILES])


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise FileError(
            f"File '{target}' cannot be written: {error.strerror}. Choose another folder with --output-directory."
        ) from error

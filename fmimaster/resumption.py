"""A run that was ended continues from its last checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from fmimaster.checkpoint.file import CheckpointFile
from fmimaster.given_path import given_path
from fmimaster.results.results import Results
from fmimaster.session import ProgressCallback
from fmimaster.session.origin import settings_in
from fmimaster.simulation import Simulation


def resume(
    checkpoint: str | os.PathLike[str],
    simulation: Simulation | None = None,
    progress: ProgressCallback | None = None,
    *,
    output_file: str | os.PathLike[str] | TextIO | None = None,
) -> Results:
    """Continue a run from its last checkpoint to its stop time.

    Parameters
    ----------
    checkpoint : path
        The file that ``checkpoint`` of the settings named. The file of rows must be beside it.
    simulation : Simulation, optional
        The simulation of the run. It is needed if the settings contain what cannot be written to a file: components in
        Python, functions, or classes that are not of fmimaster.
    progress
        As in :meth:`Simulation.run`.
    output_file : path or text stream, optional
        As in :meth:`Simulation.run`. Default: the file of the run that was ended, if it had one; it then has the rows of
        both parts.

    Returns
    -------
    Results
        All rows from the start time on. If all FMUs can write their state to a file, they are those of a run that was not
        ended, bit for bit. The calls of other FMUs are repeated; if an FMU does not repeat its values, there is a warning.

    Raises
    ------
    FileError
        If the file is missing, damaged, truncated, or not a checkpoint.
    OptionError
        If it belongs to another run: to other FMUs, another system, other settings, or another version of fmimaster; or
        if the simulation is needed.
    SimulationError, AccuracyError
        As :meth:`Simulation.run`.

    Examples
    --------
    >>> from fmimaster import Simulation, reference_path, resume
    >>> ball = reference_path("fmi3/BouncingBall.fmu")
    >>> simulation = Simulation(ball, stop_time=2, checkpoint="ball.checkpoint")
    >>> with simulation.start() as run:
    ...     run.advance(1)
    >>> float(resume("ball.checkpoint").time[-1])
    2.0
    """
    path = given_path(checkpoint).absolute()
    file = CheckpointFile.read(path)
    if simulation is None:
        simulation = settings_in(path, file, Simulation)
    if output_file is None and file.output_file:
        output_file = Path(file.output_file)
    return simulation.run(progress, output_file=output_file, resume_from=path)

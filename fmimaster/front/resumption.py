"""A run that was ended continues from its last checkpoint."""

from __future__ import annotations

import os
from typing import TextIO

from fmimaster.base.files import given_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.session.checkpoint.file import CheckpointFile
from fmimaster.session.origin import results_beside, settings_in
from fmimaster.session.progress import ProgressCallback


def resume(
    checkpoint: str | os.PathLike[str],
    simulation: Simulation | None = None,
    progress: ProgressCallback | None = None,
    *,
    output_file: str | os.PathLike[str] | TextIO | None = None,
    fmi_log_file: str | os.PathLike[str] | None = None,
    final_fmu_state: str | os.PathLike[str] | None = None,
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
        As in :meth:`Simulation.run`. Default: if the run that was ended had one, a file of the same name beside the
        checkpoint; it then has the rows of both parts. A file that is there is replaced only if it begins with the rows of
        this run.
    fmi_log_file, final_fmu_state : path, optional
        As the settings. Default: if the run that was ended had one, ``CHECKPOINT.calls.log`` and
        ``CHECKPOINT.states``. With a simulation, its settings hold.

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
        written = {"fmi_log_file": fmi_log_file, "final_fmu_state": final_fmu_state}
        simulation = settings_in(path, file, Simulation, **written)
    if output_file is None:
        output_file = results_beside(path, file)
    return simulation.run(progress, output_file=output_file, resume_from=path)

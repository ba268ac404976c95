"""A simulation in one call: from the start, or from its last checkpoint on."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import cleandoc, signature
from typing import Any, ParamSpec, TextIO

from fmimaster.base.files import given_path
from fmimaster.configure.settings import Settings
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.session.work_thread import ProgressCallback

_P = ParamSpec("_P")


def _with_settings_of(
    make: Callable[_P, Simulation],
) -> Callable[[Callable[..., Results]], Callable[_P, Results]]:
    """For a function that takes what ``make`` takes: help() and editors show the settings from their one description."""

    def described(run: Callable[..., Results]) -> Callable[_P, Results]:
        settings = cleandoc(Settings.__doc__ or "")
        settings = settings[settings.find("Parameters\n") :].partition("----\n")[2].lstrip("-\n")
        run.__doc__ = cleandoc(run.__doc__ or "").replace(_AS_IN_SETTINGS, settings)
        shown = signature(make).replace(return_annotation=Results)
        run.__signature__ = shown  # type: ignore[attr-defined]
        return run

    return described


_AS_IN_SETTINGS = """system, **settings
    As in :class:`fmimaster.configure.settings.Settings`."""


@_with_settings_of(Simulation)
def simulate(*system: Any, **settings: Any) -> Results:
    """Simulate a system once: creates a :class:`Simulation` and runs it.

    Parameters
    ----------
    system, **settings
        As in :class:`fmimaster.configure.settings.Settings`.

    Returns
    -------
    Results
        All rows, with units, events, causes of steps, and statistics of the run.

    Warns
    -----
    AccuracyWarning
        If the results are less accurate than they should be, for example because an event was found late.

    Raises
    ------
    InputError, ProgramError
        Before anything is simulated.
    SimulationError
        If the run cannot be completed; its ``results`` hold all rows up to the failure. It is Interrupted after Ctrl-C.
    AccuracyError
        With ``strict``, instead of the warning.

    Examples
    --------
    >>> from fmimaster import reference_path, simulate
    >>> results = simulate(reference_path("fmi3/Dahlquist.fmu"), stop_time=1, step_size="1/10")
    >>> round(float(results["x"][-1]), 6)
    0.367879
    """
    return Simulation(*system, **settings).run()


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
    from fmimaster.session.checkpoint_file import CheckpointFile  # few runs are continued
    from fmimaster.session.origin import results_beside, settings_in

    path = given_path(checkpoint).absolute()
    file = CheckpointFile.read(path)
    if simulation is None:
        written = {"fmi_log_file": fmi_log_file, "final_fmu_state": final_fmu_state}
        simulation = settings_in(path, file, Simulation, **written)
    if output_file is None:
        output_file = results_beside(path, file)
    return simulation.run(progress, output_file=output_file, resume_from=path)

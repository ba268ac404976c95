"""The main entry point: a system and its settings as one value that can be planned and run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from fmimaster.base.data import dataclass
from fmimaster.base.errors import (
    OptionError,
    unknown_attribute,
)
from fmimaster.configure.settings import AT_ONCE, Settings
from fmimaster.fmu.load import Loader
from fmimaster.front.attempts import RunsForResult
from fmimaster.front.single_run import judge
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.prepared import Prepared
from fmimaster.prepare.structures import structures_of
from fmimaster.results.files import check_results_file
from fmimaster.results.results import Results
from fmimaster.session.attendance import Attendance
from fmimaster.session.launch import (
    attended_run,
    refuse_one_file_for_two,
)
from fmimaster.session.work_thread import ProgressCallback, Signals, silent, unanswered

if TYPE_CHECKING:
    from fmimaster.export.export import ExportedSystem
    from fmimaster.front.accuracy_pair import Pair
    from fmimaster.front.compiled import CompiledRuns
    from fmimaster.pages.plan import PlanPage
    from fmimaster.session.repeated import RepeatedRuns
    from fmimaster.session.stepwise import Run

log = logging.getLogger("fmimaster")

_STEPWISE = "run = simulation.start(), and then "

_ELSEWHERE = {
    "step": f"{_STEPWISE}run.advance(duration)",
    "do_step": f"{_STEPWISE}run.advance(duration)",
    "doStep": f"{_STEPWISE}run.advance(duration)",
    "advance": f"{_STEPWISE}run.advance(duration)",
    "advance_to": f"{_STEPWISE}run.advance_to(time)",
    "set": f"{_STEPWISE}run['u'] = 1.0",
    "get": f"{_STEPWISE}run['y']",
    "initialize": "start()",
    "instantiate": "start()",
    "setup": "start()",
    "simulate": "run()",
    "terminate": "close() of what start() returns",
}
"""Names that other libraries have → what it is here."""


@dataclass(frozen=True, repr=False)
class Simulation(Settings):
    """A system and how to simulate it. The settings are those of :class:`fmimaster.configure.settings.Settings`.

    Examples
    --------
    >>> from fmimaster import Simulation, reference_path
    >>> simulation = Simulation(reference_path("fmi3/Dahlquist.fmu"), stop_time=1, step_size="1/10")
    >>> results = simulation.run()
    >>> round(float(results["x"][-1]), 6)
    0.367879
    """

    if not TYPE_CHECKING:  # for type checkers, an unknown attribute stays an error

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError that names the attribute which is probably meant."""
            raise unknown_attribute(self, name, _ELSEWHERE)

    def prepare(self) -> Prepared:
        """Prepare a run without instantiating an FMU: the plan, the programs, the times.

        Returns
        -------
        Prepared
            With ``plan``, ``programs``, ``schedule`` and ``notes``.

        Raises
        ------
        InputError, ProgramError
            If it cannot be simulated so.
        """
        with Loader() as loader:
            return prepare(self, loader)

    def plan(self, *, programs: bool = False) -> PlanPage:
        """How the system will be computed: order, delays, loops, conversions, events. No FMU is loaded.

        Parameters
        ----------
        programs : bool
            Whether the page contains the instructions of all programs.

        Returns
        -------
        PlanPage
            ``print(simulation.plan())`` shows the page of ``fmimaster plan``; ``simulation.plan().facts`` has the same
            content as plain data. Without a stop time, it is the plan of a run of 500 steps. If the structure of the system
            changes, it has the plan of each structure.

        Raises
        ------
        InputError, ProgramError
            If the system cannot be simulated with these settings; a stop time is not needed.

        Examples
        --------
        >>> from fmimaster import Simulation, reference_path
        >>> plan = Simulation(reference_path("systems/two-mass-b1-mixed.ssp")).plan()
        >>> print(plan.facts["eventClock"])
        predictive
        """
        from fmimaster.front.chosen_steps import steps_to_choose
        from fmimaster.pages.plan import PlanPage, plan_facts

        with Loader() as loader:
            prepared = prepare(self, loader, needs_stop_time=False)
            completed = prepared.completed(self)
            structures = structures_of(completed, prepared, partial(prepare, loader=loader))
            later = () if structures is None else [*structures.every()][1:]
        facts = plan_facts(completed, prepared, later, programs=programs)
        facts["notes"] += steps_to_choose(self, prepared)
        return PlanPage(facts)

    def run(
        self,
        progress: ProgressCallback | None = None,
        *,
        output_file: str | os.PathLike[str] | TextIO | None = None,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> Results:
        """Simulate the system from the start time to the stop time.

        Parameters
        ----------
        progress
            A function that is called about ten times per second with a :class:`fmimaster.Progress`. It is called in the
            calling thread, while FMUs are called in another thread. If it returns ``False``, the run ends, and the
            results have the rows up to that time; no final FMU states are written. An exception that it raises also
            ends the run and is raised again here; its attribute ``results`` has the rows. With ``accuracy``, which needs
            whole runs, the returned value has no effect.
        output_file : path or text stream
            A file to which the rows are written during the run, in the format of its suffix, as
            :meth:`fmimaster.Results.write` lists them; a text stream gets CSV. The results then keep only the last block of
            rows, and a run of any length needs little memory. The file has all events and causes of steps (for ``NAME.csv``
            they are in ``NAME.csv.json``); the results have the last 1000 events and 10 000 entries of steps. For a text
            stream the results keep all of them.
        resume_from : path
            A checkpoint of an earlier run of the same simulation, from which this run continues; see ``checkpoint`` of
            :class:`fmimaster.configure.settings.Settings`. The results have all rows from the start time on. Further
            checkpoints are written to the same file.

        Returns
        -------
        Results
            One row for each communication point and event, unless ``output_interval`` is set.

        Warns
        -----
        AccuracyWarning
            If the run is complete, but its results are less accurate than they should be, for example because an event
            was found late.

        Raises
        ------
        InputError, ProgramError
            Before anything is simulated.
        SimulationError
            If the run cannot be completed; its ``results`` hold all rows up to the failure. It is Interrupted after
            Ctrl-C, also if an FMU does not return from a call; fmimaster then no longer waits for that call.
        AccuracyError
            With ``strict``, instead of the warning. It is raised before anything is simulated, if the reason is known
            before the run.
        """
        if isinstance(output_file, str | os.PathLike):
            check_results_file(output_file)
        refuse_one_file_for_two(self, output_file)
        if self.accuracy is not None:
            if resume_from is not None:
                raise OptionError(
                    "resume_from continues one run, but accuracy does several. Leave one of them out."
                )
            from fmimaster.front.accurate_run import accurate  # it needs several runs

            return accurate(self, progress, output_file)
        return RunsForResult(self, progress or silent, output_file, resume_from).run()

    def start(
        self,
        *,
        output_file: str | os.PathLike[str] | TextIO | None = None,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> Run:
        """Start a stepwise run: the caller advances it, and reads and sets values at each pause.

        Parameters
        ----------
        output_file : path or text stream
        resume_from : path
            As in :meth:`run`.

        Returns
        -------
        Run
            The initialized run at the start time, or at the time of the checkpoint; a context manager that ends the run.

        Raises
        ------
        InputError, ProgramError, SimulationError
            As in :meth:`run`.
        OptionError
            If ``accuracy`` is set, because it needs several runs.

        Examples
        --------
        >>> from fmimaster import Simulation, reference_path
        >>> room = reference_path("fmi3/ThermostatRoom.fmu")
        >>> with Simulation(room, stop_time=2, step_size="1/10").start() as run:
        ...     run.advance(1)
        ...     run["q"] = False
        ...     run.advance_to(2)
        >>> run.results.rows
        22
        """
        if self.accuracy is not None:
            raise OptionError(
                "With accuracy a simulation is run several times with shorter steps, and cannot pause. Leave accuracy "
                "out, or use run()."
            )
        refuse_one_file_for_two(self, output_file)
        from fmimaster.session.stepwise import Run  # only a run that pauses needs it

        with ExitStack() as files, Signals() as signals:
            attendance = attended_run(
                self, signals, silent, output_file, files, resume_from, kind=Attendance
            )
            run = Run(attendance, files, partial(judge, self))
            run.begin()
            files.pop_all()
        return run

    def repeated(self, names: str | Iterable[str] = ()) -> RepeatedRuns:
        """Prepare runs of this simulation that differ in start values only: each takes little more than its steps.

        The second error estimate of :meth:`run` is not made, nothing is written to files, and there is one run for each
        call: methods stay those that were chosen for the system.

        Parameters
        ----------
        names
            Start values that vary, one or several: ``"component.variable"`` or connectors, as in ``start_values``.
            Structural parameters, intervals of clocks, connected inputs, and what the methods set themselves cannot.

        Returns
        -------
        RepeatedRuns
            Called with a mapping of names to values; a context manager that frees the FMUs.

        Raises
        ------
        InputError, ProgramError
            As :meth:`run`.
        OptionError
            If the simulation writes FMU states, checkpoints or intermediate values, needs several runs for an accuracy,
            or its structure changes.

        Examples
        --------
        >>> from fmimaster import Simulation, reference_path
        >>> car = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=1)
        >>> with car.repeated(["wheel.dc"]) as runs:
        ...     for damping in (500.0, 2000.0):
        ...         print(f"{runs({'wheel.dc': damping})['chassis.velocity'].max():.3f}")
        0.546
        0.644
        """
        from fmimaster.session.repeated import repeated_runs  # few are

        settings = replace(self, error_estimate=False)
        chosen = (names,) if isinstance(names, str) else tuple(names)
        return repeated_runs(settings, chosen, partial(judge, settings))

    def export(self, path: str | os.PathLike[str], *, fmi_version: int = 3) -> ExportedSystem:
        """Write the system as a Co-Simulation FMU that runs without Python: the kernel in C with its FMUs.

        The settings are part of it: algorithm, step size, start values. It runs where all its FMUs have a library.

        Parameters
        ----------
        path
            File of the FMU; an older export of that name is replaced.
        fmi_version : 2 or 3
            Of FMI.

        Returns
        -------
        ExportedSystem
            What was written; ``print`` shows it.

        Raises
        ------
        InputError, ProgramError
            As :meth:`run`.
        OptionError
            If the run needs Python, with every reason; see the page Export of the documentation.
        """
        from fmimaster.export.export import export  # few do

        return export(self, path, fmi_version)

    def compiled(
        self,
        names: str | Iterable[str] = (),
        *,
        record: Iterable[str] | None = None,
        output_interval: float | None = None,
    ) -> CompiledRuns:
        """Prepare runs in C, thousands at once, that differ in start values only: each takes little more than its loop.

        Parameters
        ----------
        names
            Start values that vary, as in :meth:`repeated`: single numbers.
        record
            Columns of the results that are kept; default: all that are single Float64 numbers.
        output_interval
            Time in s between two rows, a multiple of the step size; default: the step size.

        Returns
        -------
        CompiledRuns
            Called with a mapping of names to values, one for each run; a context manager that frees the FMUs.

        Raises
        ------
        InputError, ProgramError
            As :meth:`run`.
        OptionError
            If a run needs Python in its steps, with each reason; if the time of the run or the output interval is no
            multiple of the step size; or if a run in C, or its repetition, differs in a bit from :meth:`run`.

        Examples
        --------
        >>> from fmimaster import Simulation, reference_path
        >>> car = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=1)
        >>> with car.compiled("wheel.dc", record=["chassis.velocity"]) as runs:
        ...     velocities = runs({"wheel.dc": [500.0, 2000.0]})["chassis.velocity"]
        >>> velocities.shape, velocities.max(axis=1).round(3).tolist()
        ((2, 1001), [0.546, 0.644])
        """
        from fmimaster.front.compiled import CompiledRuns  # few are

        settings = replace(self, error_estimate=False)
        chosen = (names,) if isinstance(names, str) else tuple(names)
        columns = None if record is None else tuple(record)
        return CompiledRuns(settings, chosen, columns, output_interval, settings.run())

    def check_step(
        self, progress: ProgressCallback | None = None, *, coarse: Results | None = None
    ) -> Pair:
        """Simulate twice, the second time with half the step size: the differences estimate the error of the steps.

        Outputs with small differences have steps that are short enough. If an output grows without bound in the first
        run only, the coupling is unstable, not the model.

        Parameters
        ----------
        progress
            As in :meth:`run`, for one run after the other. The returned value has no effect, because both runs must be
            whole.
        coarse : Results, optional
            The results of :meth:`run`, with all rows. Then only the second run is simulated.

        Returns
        -------
        Pair
            Both runs; :meth:`Pair.differences` gives the difference of each output.

        Raises
        ------
        InputError, ProgramError, SimulationError
            As in :meth:`run`.

        Source: Richardson (1911).

        Examples
        --------
        >>> from fmimaster import Simulation, reference_path
        >>> car = reference_path("systems/quarter-car-a-fmi3.ssp")
        >>> worst = Simulation(car, step_size="1/1000", stop_time=1).check_step().differences()[0]
        >>> f"{worst.name} {worst.largest:.2g} {worst.unit} at {worst.time:.2g} s"
        'wheel.force 18 N at 0.073 s'
        """
        from fmimaster.front.accuracy_pair import Pair, half

        if self.accuracy is not None:
            raise OptionError(
                "With accuracy the steps are halved already, and the notes of the run contain the error. Leave "
                "check_step (--check-step) or accuracy (--accuracy) out."
            )
        progress = unanswered(progress or silent)
        # both runs need a row at each communication point
        whole = replace(
            self,
            output_interval=None,
            final_fmu_state=None,
            checkpoint=None,
            error_estimate=False,
        )
        prepared = whole.prepare()
        names = [c.name for c in prepared.plan.recorded if c.is_comparable]
        coarse = coarse or whole.run(progress)
        rule = half(prepared.schedule.rule, coarse)
        # the log of FMI calls is that of the run itself
        halved = replace(whole, step_size=rule, log_fmi_calls=False, fmi_log_file=None, **AT_ONCE)
        return Pair(coarse, halved.run(progress), names)

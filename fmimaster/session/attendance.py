"""A run whose FMUs are called in their own thread, while the calling thread handles signals."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from fmimaster.apart import shared_run
from fmimaster.base.errors import FmimasterError, Interrupted, OptionError, SimulationError
from fmimaster.configure.settings import Settings
from fmimaster.fmu.library import call_in_words
from fmimaster.fmu.load import Loader
from fmimaster.fmu.process_state import (
    ProcessState,
    fmu_output_to_log,
    keep_output_pipe,
    let_go_output_pipe,
)
from fmimaster.plan.variables import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.prepare.structures import Structures
from fmimaster.record.causes import Event, Steps
from fmimaster.results.facts_writer import FactsWriter
from fmimaster.results.results import Results
from fmimaster.results.row_writer import RowWriter
from fmimaster.run.choice import told_of_exit
from fmimaster.session.instances import words_for_fmus
from fmimaster.session.run_log import log_end
from fmimaster.session.session import Session
from fmimaster.session.work_thread import (
    Progress,
    ProgressCallback,
    RunStopped,
    Signals,
    StartsAnew,
    StopRequest,
    WorkThread,
    interrupted,
    silent,
)

if TYPE_CHECKING:
    from fmimaster.cards.measured import MeasuredAtStart
    from fmimaster.session.checkpoints import Checkpoints

    PrepareAgain = Callable[[MeasuredAtStart], tuple[Prepared, Structures | None, Settings]]
    """Prepares a run again, by what its start has shown about dependencies."""

log = logging.getLogger("fmimaster")

TICK = 0.1
"""Wall time in s between two checks of the listening thread."""

PATIENCE = 1.0
"""Wall time in s in which a stopped run can end itself; after it, its thread is abandoned."""


class Attendance:
    """One run, from the first instance to the release of the last one.

    FMUs are loaded, called and freed in their own thread. The thread that calls :meth:`run` listens: it handles
    signals, shows progress, and writes waiting rows. An FMU that does not return cannot be ended; its thread is
    abandoned, and the rows so far are kept.

    Parameters
    ----------
    again : PrepareAgain, optional
        Prepares the run anew if a measurement at its start shows that it must be.
    """

    def __init__(
        self,
        prepared: Prepared,
        loader: Loader,
        settings: Settings,
        signals: Signals,
        *,
        writer: RowWriter | None = None,
        facts: FactsWriter | None = None,
        progress: ProgressCallback = silent,
        checkpoints: Checkpoints | None = None,
        structures: Structures | None = None,
        output_file: str | os.PathLike[str] | None = None,
        again: PrepareAgain | None = None,
    ) -> None:
        self.session: Session | None = None
        """The session; None until all instances are made."""
        self.prepared = prepared
        self.loader = loader
        self.settings = settings
        self.signals = signals
        self.writer = writer
        self._facts = facts
        self._progress = progress
        self._again = None if prepared.measured is None else again
        self._checkpoints = checkpoints
        self._structures = structures
        self.output_file = output_file
        self.when_complete: Callable[[], None] = lambda: None
        """Called in the thread of the FMUs when all rows were recorded, before FMUs are terminated."""
        self.left: tuple[Sequence[Event], Sequence[Steps], Results] | None = None
        """Events, steps and results that the process of the run has left, if it was lost."""
        self.accuracy_warnings: tuple[str, ...] = ()
        """Of a run in another process."""
        self._hanging = ""
        """The call that has not returned."""
        self._stop_request = StopRequest()
        self._process = ProcessState()
        self._fmus = words_for_fmus(prepared.plan)
        names = [instance.name for instance in prepared.plan.instances]
        self._component = names[0] if len(names) == 1 else ""
        self._thread = WorkThread(self._work)
        self._lead: Callable[[Session], None] | None = None

    @property
    def changes_structure(self) -> bool:
        """Whether the structure of the system changes during the run."""
        return self._structures is not None

    @property
    def every_structure(self) -> Sequence[Prepared]:
        """Those that the run has known so far; one if the structure does not change."""
        return [self.prepared] if self._structures is None else self._structures.prepared

    @property
    def columns(self) -> Sequence[Recorded]:
        """Those of the results."""
        structures = self._structures
        return self.prepared.plan.recorded if structures is None else structures.columns

    # In the thread of the FMUs

    def _work(self) -> Results:
        try:
            return self._work_in_thread()
        finally:
            if self._checkpoints is not None:
                self._checkpoints.close()
            self.loader.close()
            self._process.put_back(self._fmus)
            let_go_output_pipe(self)

    def _work_in_thread(self) -> Results:
        while True:
            try:
                return self._begun().run(self._lead)
            except StartsAnew as found:
                self.session = None
                self.loader.free_instances()
                self._prepare_anew(found.measured)

    def prepare_as(self, measured: MeasuredAtStart) -> None:
        """Have what the process of a run had prepared at last, which its start has shown to be needed."""
        if self._again is not None and measured != self.prepared.measured:
            self.prepared, self._structures, self.settings = self._again(measured)

    def _prepare_anew(self, measured: MeasuredAtStart) -> None:
        """Prepare the run by what its start has shown, and report what is new."""
        assert self._again is not None
        said, before = {*self.prepared.warnings}, self.prepared.measured
        assert before is not None
        if (known := before.and_also(measured)) == before:  # nothing new: it would not end
            self._again = None
            return
        self.prepared, self._structures, self.settings = self._again(known)
        if self.settings.error_estimate is not False:  # it says whether they matter
            said |= {*self.prepared.programs.unsolved}
        for text in self.prepared.warnings:
            if text not in said:
                log.warning("%s", text)

    def _begun(self) -> Session:
        """A session with all instances made."""
        self.session = Session(
            self.prepared,
            self.loader,
            self.settings,
            self.writer,
            facts=self._facts,
            stop_request=self._stop_request,
            process=self._process,
            checkpoints=self._checkpoints,
            structures=self._structures,
            may_start_anew=self._again is not None,
        )
        self.session.when_complete = self.when_complete
        if self._structures is not None:
            # few systems change their structure
            from fmimaster.session.structure_changes import StructureChanges

            changes = StructureChanges(self.session, self._structures)
            self.session.steps_over_changes = changes.steps
        return self.session

    def _follow(self, session: Session) -> None:
        """Execute orders until the run must end."""
        while (order := self._thread.rest()) is not None:
            order(session)
            self._stop_request.heed()

    # In the thread that listens

    def run(self) -> Results:
        """Simulate.

        Raises
        ------
        SimulationError
            With all rows so far; Interrupted after Ctrl-C.
        Exception
            An exception of the progress callback, with an attribute ``results``: all rows so far.
        """
        try:
            self._attended(self._thread.start)
        except RunStopped:  # the progress callback has returned False
            assert self.session is not None
            return self.session.results()
        return self._thread.result()

    def start(self) -> None:
        """Initialize; the thread then waits for orders. This method, :meth:`order` and :meth:`end` return when they are
        done, or raise like :meth:`run`.
        """
        if self._structures is not None:
            raise OptionError(
                "A run with pauses (Simulation.start) is not possible for a system whose structure changes (a component or "
                "connection has a lifetime). Use run()."
            )
        self._lead = self._follow
        keep_output_pipe(self)
        self._attended(self._thread.start)

    def order(self, order: Callable[[Session], None]) -> None:
        """Execute a function in the thread of the FMUs."""
        self._attended(lambda: self._thread.wake(order))

    def end(self) -> Results:
        """End a run that was begun by :meth:`start`, at its present time."""
        self._attended(lambda: self._thread.wake(None))
        return self._thread.result()

    @property
    def takes_orders(self) -> bool:
        """Whether it has begun, waits for orders, and has not ended."""
        return self._thread.is_resting

    def forget(self) -> None:
        """Request the end of a run that waits for orders, without waiting for it."""
        if self.takes_orders:
            self._thread.wake(None)

    def _attended(self, begin: Callable[[], None]) -> None:
        """Start the thread of the FMUs, and listen until it has ended or waits for orders."""
        self.signals.is_held = True
        with fmu_output_to_log(self._component), told_of_exit(self._thread, self._exited):
            try:
                begin()
                self._listen()
                if not self._thread.is_resting:
                    self._thread.result()
                if self._thread.is_left_alone:  # by exit() after the last row
                    self._conclude()
            except BaseException as error:
                with suppress(KeyboardInterrupt):  # a second Ctrl-C: do not wait any longer
                    self._end()
                if not self._thread.is_left_alone and not self._thread.wait(0.0):
                    self._leave_alone()
                if isinstance(error, KeyboardInterrupt):
                    raise self.interrupted() from None
                self._add_results(error)
                raise
        if not self._thread.is_resting:  # here: what the FMUs have printed is in the log now
            self._log_end()

    def _log_end(self) -> None:
        if self.session is not None:
            log_end(self.session.time, self._thread.result().statistics)

    def _add_results(self, error: BaseException) -> None:
        """Attach all rows so far to an error, if the run has not done so."""
        has_them = isinstance(error, SimulationError) and not self._thread.is_left_alone
        is_early = isinstance(error, FmimasterError) and self.session is None
        if not (has_them or is_early or isinstance(error, RunStopped)):
            results = None if self.session is None else self.session.results()
            # an exception of the callback may not accept attributes
            with suppress(AttributeError, TypeError):
                setattr(error, "results", results)  # noqa: B010 - not every exception has it

    def _listen(self) -> None:
        while not self._thread.wait(TICK):
            self._heed_signals()
            self._look()
        self._heed_signals()
        if self.session is not None:
            self._show(self.session)

    def _heed_signals(self) -> None:
        if self.signals.raised:
            raise self.signals.raised[0]

    def _look(self) -> None:
        """Write waiting rows, show the progress, and let the run check requests."""
        if self.signals.is_listening:
            self._process.put_back_signals(self._fmus)
        session = self.session
        if session is None:
            return
        if self.writer is not None:
            self.signals.is_held = not self.writer.may_block
            session.rows.hand_on_if_old()
            self.signals.is_held = True
        session.ask()
        self._show(session)

    def _show(self, session: Session) -> None:
        """Call the progress callback. If it returns False, the run ends after the present step, even if that takes
        long."""
        if self._progress is silent:
            return
        progress = Progress(
            session.start.seconds,
            session.time,
            session.stop.seconds,
            session.state.counts(session.executor.reached)[0],
            session.seconds,
        )
        answer = self._progress(progress)
        # a comparison with a number of NumPy gives another False
        if isinstance(answer, bool | np.bool_) and not answer:
            self._stop_request.is_made = True

    def _end(self) -> None:
        """Request the end of the run; abandon its thread if it does not end in time."""
        self._stop_request.is_made = True
        if self._thread.is_resting:
            self._thread.wake(lambda _: None)
        until = perf_counter() + PATIENCE
        while not self._thread.wait(TICK / 4) and perf_counter() < until:
            if len(self.signals.raised) > 1:
                break
            if self.session is not None:
                self.session.ask()
        if self._thread.is_left_alone:  # by exit()
            self._conclude()

    def _leave_alone(self) -> None:
        self._hanging = shared_run.first_words(self._call_under_way() or "a call of an FMU")
        self._thread.leave_alone()
        self._conclude()

    def _conclude(self) -> None:
        """Keep the rows and clean up, instead of the thread of the FMUs."""
        with suppress(KeyboardInterrupt):
            if self.session is not None:
                self.session.rows.close(PATIENCE)
                self.session.facts.close(PATIENCE)
        self.loader.abandon()
        self._process.put_back_process(self._fmus)
        let_go_output_pipe(self)

    def interrupted(self) -> Interrupted:
        """The error for an interrupted run, with the rows so far."""
        rows = None if self.session is None else self.session.results()
        time = float(rows.time[-1]) if rows is not None and rows.rows else None
        left = " did not return, and its thread was abandoned."
        error = interrupted(time, f" {self._hanging}{left}" if self._hanging else "")
        error.results = rows
        return error

    # In any thread

    def _call_under_way(self) -> str:
        """The call in which the thread of the FMUs is, such as ``"fmi3DoStep of 'motor'"``; empty if it is in none.

        Each part that calls FMUs keeps the present call where any thread can read it.
        """
        session, shared = self.session, shared_run.current
        if shared is not None and (words := shared.note_now):
            return words
        if (words := self.loader.present) or session is None:
            return words
        for instance in session.instances:
            if function := instance.calling:
                return call_in_words(function, instance.name, instance.model)
        if session.rows.is_passing_on:  # not a call of an FMU, but perhaps a pipe that is not read
            return "the writing of the results"
        if (call := session.executor.present_call()) is None:
            return ""
        called = session.plan.instances[call[0]]
        return call_in_words(call[1], called.name, called.model)

    def _exited(self) -> None:
        """Handle an FMU that ends the process."""
        call, session = self._call_under_way(), self.session
        where = f" in {call}" if call else ""
        if session is not None and session.is_complete:
            log.warning(
                "An FMU has called exit()%s. All rows had been recorded: the results are complete.",
                where,
            )
            self._thread.ended_with(session.results())
            return
        when = "" if session is None else f" at t = {session.time:.12g} s"
        self._thread.ended_by(
            SimulationError(
                f"An FMU has called exit(){where}{when}, which would end the whole process. Often a licence or a file is "
                "missing; the output that the FMU printed before may name it (--verbose)."
            )
        )

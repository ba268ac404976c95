"""One simulation that is run again and again with other start values, by the same instances."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import (
    DescriptionError,
    OptionError,
    SimulationError,
    did_you_mean,
)
from fmimaster.base.text import count as counted
from fmimaster.base.text import listed
from fmimaster.base.typed_arguments import expect
from fmimaster.configure.setting_rows import ROWS
from fmimaster.configure.settings import Settings
from fmimaster.fmu.process_state import keep_output_pipe
from fmimaster.plan.layout import SET_IN_A_RUN, Group
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.results import Results
from fmimaster.session.attendance import Attendance
from fmimaster.session.launch import attended_run
from fmimaster.session.session import Session
from fmimaster.session.work_thread import Signals, StartsAnew, silent
from fmimaster.system.model import DataType
from fmimaster.system.varied import outside_in_words, values_in_a_run

log = logging.getLogger("fmimaster")

Place = tuple[DataType, slice]
"""Type, and elements of the value store."""

StartValues = Mapping[tuple[str, str], NDArray[Any]]
"""Component and variable → what it gets in a run."""

_OF_ONE_RUN = (
    "accuracy",
    "initial_fmu_state",
    "final_fmu_state",
    "checkpoint",
    "record_intermediate_values",
)
"""Settings that repeated runs cannot have."""


class Beginning:
    """What a session remembers before its first step of all, and gets back before each other run."""

    def __init__(self, session: Session) -> None:
        executor = session.executor
        self._store, self._registers = executor.store.copy(), executor.registers.copy()

    def take_back(self, session: Session) -> None:
        """Bring the session back there: its FMUs are reset, and its rows are those of a new run."""
        executor = session.executor
        for instance in session.instances:
            instance.reset()
        executor.begin_anew()
        executor.store.restore(self._store)
        executor.registers.restore(self._registers)
        executor.registers.begin_anew()
        executor.rows.begin_anew()
        session.begin_anew()


class RepeatedAttendance(Attendance):
    """Runs one after the other in one thread, by one session as long as its FMUs can be reset."""

    _beginning: Beginning | None = None
    """None if the next run needs new instances."""
    _places: Mapping[tuple[str, str], Sequence[Place]]
    """Where start values lie, by the plan of the session."""
    _answer: Results | SimulationError | None = None

    def _work_in_thread(self) -> Results:
        while (places := self._thread.rest()) is not None:
            self._answer = self._answer_to(*places)
        return self._answer  # type: ignore[return-value]  # nobody asks for it

    def _answer_to(self, values: StartValues, is_anew: bool) -> Results | SimulationError:
        while True:
            try:
                session = self._session_for_run(is_anew)
                for name, array in values.items():
                    for kind, place in self._places[name]:
                        session.executor.store.values[kind][place] = array
                return session.run()
            except StartsAnew as found:
                self._beginning = None
                self._prepare_anew(found.measured)
            except SimulationError as error:
                self._beginning = None  # FMI allows little after an error
                return error

    def _session_for_run(self, is_anew: bool) -> Session:
        session, beginning = self.session, self._beginning
        if session is not None and beginning is not None and not is_anew:
            with suppress(SimulationError):  # new instances can do what this one cannot
                beginning.take_back(session)
                return session
        self.session = None
        self.loader.free_instances()
        session = self._begun()
        self._places = places(self.prepared)
        can_reset = all(instance.can_reset for instance in session.instances)
        self._beginning = Beginning(session) if can_reset else None
        return session

    def _log_end(self) -> None:
        """Each run has its results; nothing is to be told about all of them."""

    def begin(self) -> None:
        """Start the thread, which waits for runs."""
        if self.changes_structure:
            raise OptionError(
                "A system whose structure changes (a component or connection has a lifetime) cannot be repeated. Use run()."
            )
        keep_output_pipe(self)
        self._attended(self._thread.start)

    def repeated(self, values: StartValues, is_anew: bool) -> Results | SimulationError:
        """A run with these start values, or the error that has ended it.

        Parameters
        ----------
        is_anew
            Whether it gets new instances.
        """
        self._attended(lambda: self._thread.wake((values, is_anew)))
        assert self._answer is not None
        return self._answer


class RepeatedRuns:
    """Runs of one simulation with different start values; made by :meth:`fmimaster.Simulation.repeated`.

    The system is planned, its FMUs are loaded and instantiated once. Before each run but the first, ``Reset`` is called,
    and everything starts as at first. The second run is preceded by a repetition of the first one: if that differs in a
    bit, an FMU does not reset, and each run gets new instances. Components in Python and isolated FMUs always get them.
    """

    def __init__(
        self,
        attendance: RepeatedAttendance,
        judge: Callable[[tuple[str, ...], Results], None],
    ) -> None:
        self._attendance = attendance
        self._judge = judge
        self._varied = attendance.prepared.varied
        places(attendance.prepared)  # refuses what cannot vary
        self._first: tuple[StartValues, dict[str, bytes]] | None = None
        """Values and results of the first run, until its repetition."""
        self._is_anew = False
        self._is_open = True
        self._runs = 0
        self._turn = threading.Lock()
        # those that are never closed leave a waiting thread
        weakref.finalize(self, attendance.forget).atexit = False
        attendance.begin()

    @property
    def names(self) -> tuple[str, ...]:
        """The start values that can vary."""
        return (*self._varied,)

    @property
    def is_open(self) -> bool:
        """Whether further runs can be made: neither closed, nor interrupted, nor ended by an FMU that calls ``exit()``."""
        return self._is_open

    def __call__(self, values: Mapping[str, Any] = MappingProxyType({})) -> Results:
        """One run.

        Parameters
        ----------
        values
            Name → start value, as in ``start_values``; those that are left out are those of the simulation.

        Returns
        -------
        Results
            Those of :meth:`fmimaster.Simulation.run` with these start values, bit for bit.

        Warns
        -----
        AccuracyWarning
            As :meth:`fmimaster.Simulation.run`.

        Raises
        ------
        OptionError, DescriptionError
            If a name was not given to :meth:`fmimaster.Simulation.repeated`, or its variable cannot have this value;
            also if the runs are closed.
        SimulationError
            If the run cannot be completed; its ``results`` have the rows so far. Another run may follow.
        """
        if not self._is_open:
            raise OptionError("The repeated runs are closed. Call them inside of their 'with'.")
        given = self._arrays(values)
        if self._first is not None:
            self._check_reset(*self._first)
        answer = self._run(given)
        if isinstance(answer, SimulationError):
            raise answer
        if not self._runs and not self._is_anew:
            self._first = given, _digests(answer)
        self._runs += 1
        self._judge(self._session.accuracy_warnings, answer)
        return answer

    def _arrays(self, values: Mapping[str, Any]) -> StartValues:
        """All start values that vary."""
        expect(values, Mapping, "A repeated run", "values")
        if unknown := next((name for name in values if name not in self._varied), None):
            raise OptionError(
                f"'{unknown}' does not vary in these runs.{did_you_mean(unknown, self._varied)} Name it in repeated()."
            )
        found = dict[tuple[str, str], NDArray[Any]]()
        for name, varied in self._varied.items():
            for one in varied:
                array = values_in_a_run(one, values[name]) if name in values else one.usual
                if name in values and (outside := outside_in_words(one, array)):
                    log.warning("%s", outside)
                found[one.component, one.variable.name] = array
        return found

    def _check_reset(self, given: StartValues, before: Mapping[str, bytes]) -> None:
        """Repeat the first run; if it gives other rows, each run gets new instances from now on."""
        self._first = None
        answer = self._run(given)
        after = {} if isinstance(answer, SimulationError) else _digests(answer)
        if other := [name for name in before if after.get(name) != before[name]]:
            self._is_anew = True
            log.warning(
                "After Reset, %s differ from those of new instances: each run gets new instances, which takes longer. An "
                "FMU does not reset all that it remembers.",
                listed([f"'{name}'" for name in other], 3),
            )

    def _run(self, given: StartValues) -> Results | SimulationError:
        if not self._turn.acquire(blocking=False):
            raise OptionError(
                "A run is under way in another thread. Make repeated runs for each thread."
            )
        try:
            with Signals() as signals:
                self._attendance.signals = signals
                return self._attendance.repeated(given, is_anew=self._is_anew)
        except BaseException:
            self._is_open = False
            raise
        finally:
            self._turn.release()

    @property
    def _session(self) -> Session:
        assert self._attendance.session is not None
        return self._attendance.session

    def close(self) -> None:
        """Free the FMUs."""
        if self._is_open:
            self._is_open = False
            self._attendance.end()

    def __enter__(self) -> RepeatedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RepeatedRuns: {counted(self._runs, 'run')}, {listed(self.names, 3) or 'nothing'} can vary>"


def repeated_runs(
    settings: Settings,
    names: Sequence[str],
    judge: Callable[[tuple[str, ...], Results], None],
) -> RepeatedRuns:
    """Prepare runs that differ in start values of these names; see :meth:`fmimaster.Simulation.repeated`.

    Parameters
    ----------
    judge
        Gets the warnings and the results of each run.
    """
    for name in _OF_ONE_RUN:
        if getattr(settings, name) not in (None, False):
            raise OptionError(
                f"{name} ({ROWS[name].option}) is for a single run. Leave it out in repeated runs, or use run()."
            )
    with ExitStack() as files, Signals() as signals:
        attendance = attended_run(
            settings, signals, silent, None, files, kind=RepeatedAttendance, varied=names
        )
        try:
            return RepeatedRuns(attendance, judge)
        except BaseException:
            attendance.loader.close()
            raise


def _digests(results: Results) -> dict[str, bytes]:
    """Name of a column → a hash of its values."""
    columns = {"time": results.time, **{name: results[name] for name in results}}
    return {name: sha256(_bytes(array)).digest() for name, array in columns.items()}


def _bytes(array: NDArray[Any]) -> bytes:
    if array.dtype == object:
        return repr(array.tolist()).encode()
    mask = np.ma.getmaskarray(array).tobytes() if np.ma.isMaskedArray(array) else b""
    return np.ma.filled(array, 0).tobytes() + mask


def places(prepared: Prepared) -> dict[tuple[str, str], list[Place]]:
    """Component and variable → where its start values lie in the value store.

    Raises
    ------
    DescriptionError
        If something else sets one of them.
    """
    slots, numbers = prepared.plan.layout.slots, prepared.plan.instances.numbers
    found = {}
    for one in (one for varied in prepared.varied.values() for one in varied):
        i, name = numbers[one.component], one.variable.name
        if any((i, group, name) in slots for group in SET_IN_A_RUN):
            raise DescriptionError(
                f"'{one.component}.{name}' cannot vary between repeated runs: a connection, or the method of the run, sets "
                "it. Vary what feeds it, or make a simulation for each value."
            )
        groups = (Group.START, Group.INITIAL)
        found[one.component, name] = [slots[i, g, name] for g in groups if (i, g, name) in slots]
    return found

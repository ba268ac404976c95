"""A run that its caller advances from pause to pause, and whose values are read and set there."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack, suppress
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from fmimaster.base.errors import FmimasterError, Interrupted, OptionError, unknown_attribute
from fmimaster.instants.grid import nearest, rounding
from fmimaster.instants.instant import Instant, exact
from fmimaster.results.results import Results
from fmimaster.session.access import Access
from fmimaster.session.attendance import Attendance
from fmimaster.session.session import Session
from fmimaster.session.work_thread import Signals
from fmimaster.steps.step_rule import Time

log = logging.getLogger("fmimaster")

_ELSEWHERE = {
    "step": "advance(duration)",
    "do_step": "advance(duration)",
    "doStep": "advance(duration)",
    "run_until": "advance_to(time)",
    "set": "run['u'] = 1.0",
    "set_input": "run['u'] = 1.0",
    "set_value": "run['u'] = 1.0",
    "get": "run['y']",
    "get_output": "run['y']",
    "get_value": "run['y']",
    "terminate": "close()",
    "stop": "close()",
    "inputs": "settable",
}
"""Names that other libraries have → what it is here."""


class Run:
    """A run that pauses at times that its caller chooses; made by :meth:`fmimaster.Simulation.start`.

    A pause is a communication point: the caller can read values, set inputs, and continue. If nothing is set, and the
    pauses are communication points of the run anyway, the results are those of :meth:`fmimaster.Simulation.run`, bit
    for bit. FMUs are called in their own thread, and only during :meth:`advance` or :meth:`advance_to`.

    It is a context manager: at the end of ``with`` the run ends at its present time, and :attr:`results` stay
    available. An error or Ctrl-C during an advance also ends the run.

    Examples
    --------
    A controller that switches the heating of a room:

    >>> from fmimaster import Simulation, reference_path
    >>> room = reference_path("fmi3/ThermostatRoom.fmu")
    >>> with Simulation(room, stop_time=60, step_size="1/10").start() as run:
    ...     while not run.is_finished:
    ...         run["q"] = run["x"] < 21.0
    ...         run.advance(1)
    >>> round(float(run.results["x"].max()), 1)
    21.9
    """

    def __init__(
        self,
        attendance: Attendance,
        files: ExitStack,
        judge: Callable[[tuple[str, ...], Results], None],
    ) -> None:
        self._attendance = attendance
        self._files = files.pop_all()
        self._judge = judge
        self._is_open = True
        self._turn = threading.Lock()
        """Held while FMUs are called."""
        self._access: Access
        self._session: Session
        self._at = Fraction(0)
        """The exact time of the pause, unless an FMU has chosen it."""
        self._results: Results | None = None
        # a run that is never closed leaves a waiting thread
        weakref.finalize(self, attendance.forget).atexit = False

    def begin(self) -> None:
        """Initialize; called once, by :meth:`fmimaster.Simulation.start`."""
        self._do(self._attendance.start)
        assert self._attendance.session is not None
        self._session = self._attendance.session
        self._access = Access(self._session)
        if self._session.has_other_states and not self.is_finished:
            self._do(lambda: self._attendance.order(self._access.read_settable))
        schedule = self._session.prepared.schedule
        self._at, base = schedule.time_of(self._session.state.time), schedule.base
        ends, size = (schedule.start, schedule.stop), schedule.rule.exact_size
        self._first, self._last, self._size = map(base.ticks, (*ends, size))
        near = max(rounding(float(t), float(schedule.stop - schedule.start)) for t in ends)
        self._near = ceil(near * base.resolution) + 1

    if not TYPE_CHECKING:  # for type checkers, an unknown attribute stays an error

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError that names the attribute which is probably meant."""
            raise unknown_attribute(self, name, _ELSEWHERE)

    # Time

    @property
    def time(self) -> float:
        """Present time of the run in s."""
        return self._session.time

    @property
    def stop_time(self) -> float:
        """Stop time of the run in s."""
        return self._session.stop.seconds

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended: at the stop time, by an FMU, or because it was closed."""
        return not self._is_open or self._session.has_ended

    def advance(self, duration: Time) -> None:
        """Simulate for a duration, or until the stop time if that is earlier.

        Parameters
        ----------
        duration : number or text, in s
            Positive. A text may be a fraction: ``"1/60"``. Durations are added exactly.

        Raises
        ------
        OptionError
            If it is not positive, no pause is possible there, or the run has ended.
        SimulationError
            If the run cannot continue; the error's ``results`` hold all rows so far. After Ctrl-C it is
            :class:`~fmimaster.base.errors.Interrupted`.
        """
        length = exact(duration)
        if length <= 0:
            raise OptionError(f"advance({duration!r}): expected a positive duration in s.")
        stop = self._session.prepared.schedule.stop
        target = min(self._on_grid(self._at + length), stop)
        if target == self._at and not self.is_finished:
            raise OptionError(
                f"advance({duration!r}): too short to reach another time than {self.time:.12g} s."
            )
        self._advance_to(target)

    def advance_to(self, time: Time) -> None:
        """Simulate until a time.

        Parameters
        ----------
        time : number or text, in s
            After the present time, and not after the stop time.

        Raises
        ------
        OptionError
            If it is outside of this range, no pause is possible there, or the run has ended.
        SimulationError
            As for :meth:`advance`.
        """
        target = self._on_grid(exact(time))
        stop = self._session.prepared.schedule.stop
        if not self._at < target <= stop:
            raise OptionError(
                f"advance_to({time!r}): expected a time after the present time {self.time:.12g} s and not after the "
                f"stop time {float(stop):.12g} s."
            )
        self._advance_to(target)

    def _advance_to(self, target: Fraction) -> None:
        session, access = self._session, self._access
        if self.is_finished:
            raise OptionError(
                f"The run has ended at t = {self.time:.12g} s. Check is_finished before advancing."
            )
        until = self._instant(target)

        def go_on(session: Session) -> None:
            if access.is_waiting:
                access.hand_over(session)
            if not session.has_ended:
                session.pause_at(until)

        self._do(lambda: self._attendance.order(go_on))
        reached = session.state.time.seconds
        self._at = target if reached == until.seconds else exact(reached)

    def restart_clock(self) -> None:
        """Let a run in real time go on from the present time, as if the pause were not there.

        Otherwise the clock goes on in a pause, and the next steps are done without waiting until the run has caught up.

        Raises
        ------
        OptionError
            If it is no run in real time.
        """
        pace = self._session.programs.pace
        if pace is None:
            raise OptionError(
                "restart_clock() is for runs in real time. Give real_time_factor to the Simulation."
            )
        if self._turn.locked():
            raise _busy()
        pace.stop_clock()

    def _ticks_of_point(self, time: Fraction) -> int | None:
        """The ticks of a time that is plainly a point of the run: on its one grid, and not near its start or end. In
        integers, since fractions take longer than a step."""
        schedule = self._session.prepared.schedule
        parts, rest = divmod(schedule.base.resolution, time.denominator)
        ticks, near = time.numerator * parts, self._near
        is_point = (
            not (rest or (ticks - self._first) % self._size) and len(schedule.rule.sizes) == 1
        )
        return ticks if is_point and self._first + near < ticks < self._last - near else None

    def _on_grid(self, time: Fraction) -> Fraction:
        if self._ticks_of_point(time) is not None:
            return time
        schedule = self._session.prepared.schedule
        time = nearest(time, schedule.start, schedule.rule.exact_size)
        return nearest(time, schedule.stop, schedule.stop - schedule.start)

    def _instant(self, target: Fraction) -> Instant:
        """A point at which the run can pause.

        Raises
        ------
        OptionError
            If it cannot.
        """
        schedule = self._session.prepared.schedule
        if (ticks := self._ticks_of_point(target)) is not None:
            return schedule.base.instant(ticks)
        sizes = schedule.rule.sizes
        if target != schedule.stop and all((target - schedule.start) % size for size in sizes):
            fixed = [
                planned.name
                for planned in self._session.plan.instances
                if not planned.model.capabilities.can_handle_variable_communication_step_size
            ]
            if fixed or len(sizes) > 1:
                why = f"'{fixed[0]}' cannot vary its step size" if fixed else "it has no grid"
                raise OptionError(
                    f"The run cannot pause at t = {float(target):.12g} s: {why}. Pause at multiples of the step size "
                    f"{' or '.join(f'{float(s):g} s' for s in sizes)}."
                )
        base = schedule.base
        if base.resolution % target.denominator == 0:
            return base.instant(base.ticks(target))
        return Instant(float(target))

    # Values

    @property
    def settable(self) -> tuple[str, ...]:
        """Names of variables that can be set: open inputs and tunable parameters."""
        return tuple(self._access.settable)

    def __getitem__(self, name: str) -> Any:
        """The value of a variable at the present time: recorded, connected or settable variables, and parameters.

        Parameters
        ----------
        name : str
            ``"component.variable"``; for a single FMU the variable's name alone is enough.

        Returns
        -------
        A number, a Boolean or a text; an array of the variable's shape. A value that was set is returned at once.

        Raises
        ------
        OptionError
            If there is no such variable, or its value is not known, because it is not recorded.
        """
        return self._access.get(name)

    __iter__ = None
    """A run is no sequence: :attr:`settable` and :attr:`results` have names."""

    __contains__ = None

    def __setitem__(self, name: str, value: Any) -> None:
        """Set an input or a tunable parameter; it keeps the value until it is set again.

        All values that are set at one pause are passed to the FMUs together, when the run continues. For an FMU with
        Event Mode this is an event; others use them from their next step. Extrapolation and step-size control restart.

        Raises
        ------
        OptionError
            If there is no such variable, it cannot be set, or the run has ended.
        DescriptionError
            If it is no value of that type.
        """
        if self.is_finished:
            raise OptionError(
                f"'{name}' was set, but the run has ended at t = {self.time:.12g} s. Set values before the end."
            )
        if self._turn.locked():
            raise _busy()
        self._refuse_under_way(name)
        self._access.set(name, value)

    def _refuse_under_way(self, name: str) -> None:
        """Refuse to set inputs of an instance in the middle of its step, as with MultiRate."""
        at = self._session.executor.registers.at
        for i, variable, _ in self._access.settable.get(name, ()):
            if at[i] < self._session.state.time.seconds:
                component = self._session.plan.instances[i].name
                raise OptionError(
                    f"'{name}' cannot be set at t = {self.time:.12g} s: a step of '{component}', which has "
                    f"'{variable.name}', began at {at[i]:.12g} s and has not ended. Set the value at the end of that step."
                )

    @property
    def results(self) -> Results:
        """All rows so far, as from :meth:`fmimaster.Simulation.run`."""
        if self._results is not None:
            return self._results
        self._session.rows.hand_on_early()
        return self._session.results()

    # The end

    def close(self) -> None:
        """End the run at its present time; a run that has ended is not changed.

        Raises
        ------
        SimulationError
            If an FMU cannot be terminated.
        AccuracyError
            As for :meth:`fmimaster.Simulation.run`, with ``strict``; otherwise there is an AccuracyWarning.
        """
        if self._is_open:
            self._do(self._finish)
            self._judge(self._session.accuracy_warnings, self.results)

    def _finish(self) -> None:
        self._results = self._attendance.end()
        self._is_open = False
        self._files.close()

    def _do(self, act: Callable[[], object]) -> None:
        """Call FMUs in their thread, while this one handles signals; an error ends the run."""
        if not self._turn.acquire(blocking=False):
            raise _busy()
        try:
            self._ending_at_errors(act)
        finally:
            self._turn.release()

    def _ending_at_errors(self, act: Callable[[], object]) -> None:
        try:
            with Signals() as signals:
                self._attendance.signals = signals
                act()
        except BaseException as error:
            if self._attendance.takes_orders:  # a signal after the thread had finished its work
                with suppress(FmimasterError):
                    self._attendance.end()
            self._is_open = False
            self._files.__exit__(type(error), error, error.__traceback__)
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, Interrupted):
                raise self._attendance.interrupted() from None
            raise

    def __enter__(self) -> Run:
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        try:
            self.close()
        except FmimasterError as later:
            if error is None:
                raise
            log.warning("%s", later)

    def __repr__(self) -> str:
        state = "finished" if self.is_finished else "paused"
        return f"<Run: {state} at t = {self.time:g} s of {self.stop_time:g} s>"


def _busy() -> OptionError:
    return OptionError(
        "An advance of this run is under way, perhaps in another thread. Wait until it has returned."
    )

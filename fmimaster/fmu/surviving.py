"""Instances around another one whose process may be lost: it is dropped then, or started again."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.around import Act, Around
from fmimaster.fmu.instance import Instance, StepAnswer, UpdateAnswer
from fmimaster.fmu.journaled import Journaled, Noise
from fmimaster.program.signals import mark_name
from fmimaster.system.clocks import Qualifier
from fmimaster.system.model import DataType

log = logging.getLogger("fmimaster")

_Answer = TypeVar("_Answer")

_NEVER_LOST = frozenset({"free", "abandon"})
"""Methods that do not raise."""


class SurvivingInstance(Around):
    """An instance around another one whose process may be lost; a subclass decides what happens then.

    The kernel calls its methods, because what follows a loss is decided in Python: 16 us per step if it may be dropped,
    25 us if it may be restarted. Executors, algorithms and events need no code for losses, and no step is rolled back.
    """

    def __init__(self, instance: Instance) -> None:
        self._steps = False
        """Whether it has begun its first step: all outputs that are used have been read."""
        self._is_dropped = False
        super().__init__(instance)

    @property
    def is_dropped(self) -> bool:
        """Whether it no longer takes part in the run."""
        return self._is_dropped

    @abstractmethod
    def _lost(
        self, error: FmuLostError, call: Callable[[], _Answer], otherwise: Callable[[], _Answer]
    ) -> _Answer:
        """What follows when a call has lost the instance.

        Parameters
        ----------
        call
            Makes the call again, for an instance that replaces it.
        otherwise
            The answer of an instance that does nothing.
        """

    def _attempt(self, call: Callable[[], _Answer], otherwise: Callable[[], _Answer]) -> _Answer:
        """The answer to a call."""
        if self.is_dropped:
            return otherwise()
        try:
            return call()
        except FmuLostError as error:
            return self._lost(error, call, otherwise)

    def make(self, make: Callable[[], Act]) -> Act:
        """A function of the instance; one that is dropped makes a function that is never called."""
        return self._attempt(make, lambda: _nothing)

    def around(self, name: str, made: tuple[Any, ...], act: Act) -> Act:
        """The call, and what follows a loss; while the instance is dropped, what :meth:`_otherwise` describes."""
        if name in _NEVER_LOST:
            return act
        if name == "terminate":
            return lambda: self._terminate(act)
        otherwise = self._otherwise(name, made)
        call = _whole(act, made[2]) if name == "getter" else act

        def survive(*arguments: Any) -> Any:
            self._steps |= name == "do_step"
            return self._attempt(lambda: call(*arguments), otherwise)

        return survive

    def _otherwise(self, name: str, made: tuple[Any, ...]) -> Callable[[], Any]:
        """What an instance that is dropped does: its outputs stay and depend on nothing, no clock ticks, none has an
        interval, no event is requested, and there is no state."""

        def hold() -> None:
            kind, _, values = made
            if kind is DataType.CLOCK:
                values[:] = False
            self.mark_dropped()

        def know_none() -> None:
            made[1].qualifier[:] = Qualifier.NOT_YET_KNOWN

        answers: dict[str, Callable[[], Any]] = {
            "getter": hold,
            "directional_derivative": lambda: made[3].fill(0.0),
            "intervals": know_none,
            "shift": Fraction,
            "update_discrete_states": UpdateAnswer,
            "do_step": lambda: self.mark_dropped(),
            "serialized": bytes,
        }
        return answers.get(name, _nothing)

    def _terminate(self, act: Act) -> None:
        """Terminate; after the last step a loss is only a line in the log."""
        if self.is_dropped:
            return
        try:
            act()
        except FmuLostError as error:
            log.warning("%s The results are complete.", str(error))


def _whole(get: Act, values: Any) -> Act:
    """A getter that puts the values back if it fails: some may have been read."""

    def act() -> None:
        last = values.copy()
        try:
            get()
        except FmuLostError:
            values[:] = last
            raise

    return act


def _nothing() -> None:
    """What an instance that is dropped does otherwise."""


class DroppedInstance(SurvivingInstance):
    """An instance around another one; when that is lost, its outputs keep the values that were read last.

    It then does no steps, requests no events, and its clocks do not tick. An instance that is lost before its
    first step has no outputs that could be kept: that is an error.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """When and why it was dropped."""
        return (*super().warnings, *self._warnings)

    def _lost(
        self, error: FmuLostError, call: Callable[[], _Answer], otherwise: Callable[[], _Answer]
    ) -> _Answer:
        if not self._steps:
            raise error
        time = self.clock()
        when = "" if time is None else f" at t = {time:.12g} s"
        text = (
            f"'{self.name}' was dropped{when}: its process {error.how} in {error.function}. Its outputs keep their "
            f"last values; the column '{mark_name(self.name)}' is 1 in these rows."
        )
        log.warning("%s", text)
        self._warnings = (text,)
        self._is_dropped = True
        return otherwise()


class RestartedInstance(SurvivingInstance):
    """An instance whose calls are recorded, so that a new one can take its place.

    The new one is brought to the last completed call; then the call that was lost is made again.

    Parameters
    ----------
    make : function
        Makes an instance in a process of its own.
    tries : int
        Largest number of restarts without a completed step between them.
    """

    def __init__(self, make: Callable[[], Instance], tries: int) -> None:
        self._make, self._tries = make, tries
        self._tried = 0
        """Restarts since the last completed step."""
        self._restarts = 0
        self._worst = Noise()
        self._journaled = Journaled(self._made())
        super().__init__(self._journaled)

    def _made(self) -> Instance:
        """A new instance; loading and instantiating are tried again too."""
        while True:
            try:
                return self._make()
            except FmuLostError as error:
                self._count(error)

    def _count(self, error: FmuLostError) -> None:
        if self._tried == self._tries:
            if self._tries > 1:
                error.args = (f"{error.args[0]} It was started again {self._tries} times.",)
            raise error
        self._tried += 1
        # a record of the log must not keep the error, and with it the lost instance
        log.warning("%s It is started again (%d of %d).", str(error), self._tried, self._tries)

    @property
    def notes(self) -> tuple[str, ...]:
        """How often it was started again."""
        if not self._restarts:
            return super().notes
        times = "once" if self._restarts == 1 else f"{self._restarts} times"
        return (*super().notes, f"'{self.name}' was started again in a new process {times}.")

    @property
    def warnings(self) -> tuple[str, ...]:
        """That a new instance did not repeat the calls exactly."""
        if self._worst.is_exact:
            return super().warnings
        return (
            *super().warnings,
            f"'{self.name}' was started again, and its repeated calls are not exact: {self._worst}.",
        )

    def _lost(
        self, error: FmuLostError, call: Callable[[], _Answer], otherwise: Callable[[], _Answer]
    ) -> _Answer:
        del otherwise
        while True:
            self._count(error)
            try:
                self._replace()
                return call()
            except FmuLostError as again:
                error = again

    def _replace(self) -> None:
        self._journaled.instance.free()
        new = self._made()
        try:
            noise = self._journaled.move_to(new)
        except BaseException:
            new.free()
            raise
        self._restarts += 1
        if noise.largest > self._worst.largest or (self._worst.is_exact and not noise.is_exact):
            self._worst = noise
        has_state = self._journaled.journal.state is not None
        how = "its serialized state and the calls after it" if has_state else "repeating its calls"
        time = self.clock()
        where = "" if time is None else f"brought to t = {time:.12g} s "
        log.warning("'%s' has a new process, %sby %s: %s.", self.name, where, how, noise)

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """``DoStep``; a completed step allows as many restarts as before."""
        answer = super().do_step(time, size)
        self._tried = 0
        return answer

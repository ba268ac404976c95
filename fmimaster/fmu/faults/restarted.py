"""An instance that is started again in a new process when its process is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.faults.surviving import SurvivingInstance
from fmimaster.fmu.instance import Instance, StepAnswer
from fmimaster.fmu.journaled import Journaled
from fmimaster.fmu.replay import Noise

log = logging.getLogger("fmimaster")

_Answer = TypeVar("_Answer")


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
        """Count a loss; the error if there have been too many."""
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
        """Let a new instance take the place of the one that was lost."""
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

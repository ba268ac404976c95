"""An instance around another one whose process may be lost."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.around import Act, Around
from fmimaster.fmu.instance import Instance, UpdateAnswer
from fmimaster.system.clocks import Qualifier
from fmimaster.system.model import DataType

log = logging.getLogger("fmimaster")

_Answer = TypeVar("_Answer")

_NEVER_LOST = frozenset({"free", "abandon"})
"""Methods that do not raise."""


class SurvivingInstance(Around):
    """An instance around another one whose process may be lost; a subclass decides what happens then.

    The kernel calls its methods, because what follows a loss is decided in Python.
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

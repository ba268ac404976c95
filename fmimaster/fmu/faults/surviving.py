"""An instance around another one whose process may be lost."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.instance import Instance, Signal, StepAnswer, Transfer, UpdateAnswer
from fmimaster.system.clocks import Intervals, Qualifier
from fmimaster.system.model import DataType

log = logging.getLogger("fmimaster")

_Answer = TypeVar("_Answer")


class SurvivingInstance(Instance):
    """An instance around another one whose process may be lost; a subclass decides what happens then.

    The kernel calls its methods, because what follows a loss is decided in Python.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.name, instance.model)
        self._instance = instance
        self._follow(instance)
        self._transfers: list[Callable[..., None]] = []
        """The functions of the instance that transfer values."""
        self._steps = False
        """Whether it has begun its first step: all outputs that are used have been read."""
        self._is_dropped = False

    @property
    def is_dropped(self) -> bool:
        """Whether it no longer takes part in the run."""
        return self._is_dropped

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the other instance."""
        return self._instance.notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the other instance."""
        return self._instance.warnings

    def _follow(self, instance: Instance) -> None:
        """Let an instance have the present time of this one, which an executor sets."""
        instance.clock = lambda: self.clock()
        instance.kept_from = lambda: self.kept_from()

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

    def _bound(
        self, make: Callable[[], Callable[..., None]], otherwise: Callable[[], None]
    ) -> Callable[..., None]:
        """A function of the instance, as it is after a replacement too."""
        k = len(self._transfers)
        self._transfers.append(self._attempt(make, lambda: otherwise))

        def act(*arguments: Any) -> None:
            self._attempt(lambda: self._transfers[k](*arguments), otherwise)

        return act

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A getter; while the instance is dropped, the values stay as they are, and no clock ticks."""

        def read(get: Transfer) -> Transfer:
            def act() -> None:
                last = values.copy()
                try:
                    get()
                except FmuLostError:
                    values[:] = last  # some may have been read
                    raise

            return act

        def hold() -> None:
            if kind is DataType.CLOCK:
                values[:] = False
            self.mark_dropped()

        return self._bound(lambda: read(self._instance.getter(kind, references, values)), hold)

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A setter; while the instance is dropped, it does nothing."""
        return self._bound(lambda: self._instance.setter(kind, references, values), _nothing)

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """Directional derivatives; while the instance is dropped, its outputs depend on nothing."""
        return self._bound(
            lambda: self._instance.directional_derivative(unknowns, knowns, seed, sensitivity),
            lambda: sensitivity.fill(0.0),
        )

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets polynomials."""
        return self._bound(lambda: self._instance.polynomial_setter(references), _nothing)

    # Intervals of clocks

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that asks for intervals; while the instance is dropped, none is known."""

        def hold() -> None:
            answers.qualifier[:] = Qualifier.NOT_YET_KNOWN

        return self._bound(lambda: self._instance.intervals(clocks, answers), hold)

    def shift(self, clock: int) -> Fraction:
        """``GetShift``."""
        return self._attempt(lambda: self._instance.shift(clock), Fraction)

    def set_interval(self, clock: int, interval: Fraction) -> None:
        """``SetInterval``."""
        self._attempt(lambda: self._instance.set_interval(clock, interval), _nothing)

    def set_shift(self, clock: int, shift: Fraction) -> None:
        """``SetShift``."""
        self._attempt(lambda: self._instance.set_shift(clock, shift), _nothing)

    # Modes

    def enter_configuration_mode(self) -> None:
        """``EnterConfigurationMode``."""
        self._attempt(lambda: self._instance.enter_configuration_mode(), _nothing)

    def exit_configuration_mode(self) -> None:
        """``ExitConfigurationMode``."""
        self._attempt(lambda: self._instance.exit_configuration_mode(), _nothing)

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``."""
        self._attempt(
            lambda: self._instance.enter_initialization_mode(start, stop, tolerance), _nothing
        )

    def enter_event_mode(self) -> None:
        """``ExitInitializationMode`` with Event Mode used, or ``EnterEventMode``."""
        self._attempt(lambda: self._instance.enter_event_mode(), _nothing)

    def enter_step_mode(self) -> None:
        """``ExitInitializationMode`` with Event Mode not used, or ``EnterStepMode``."""
        self._attempt(lambda: self._instance.enter_step_mode(), _nothing)

    def update_discrete_states(self) -> UpdateAnswer:
        """``UpdateDiscreteStates``; while the instance is dropped, it requests nothing."""
        return self._attempt(lambda: self._instance.update_discrete_states(), UpdateAnswer)

    # Time

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """``DoStep``."""
        self._steps = True
        return self._attempt(lambda: self._instance.do_step(time, size), self.mark_dropped)

    def save(self, place: int) -> None:
        """``GetFMUState``."""
        self._attempt(lambda: self._instance.save(place), _nothing)

    def restore(self, place: int) -> None:
        """``SetFMUState``."""
        self._attempt(lambda: self._instance.restore(place), _nothing)

    def serialized(self) -> bytes:
        """``SerializeFMUState``; an instance that is dropped has no state."""
        return self._attempt(lambda: self._instance.serialized(), bytes)

    def deserialize(self, state: bytes) -> None:
        """``DeserializeFMUState``."""
        self._attempt(lambda: self._instance.deserialize(state), _nothing)

    def reset(self) -> None:
        """``Reset``."""
        self._attempt(lambda: self._instance.reset(), _nothing)

    # The end

    def terminate(self) -> None:
        """``Terminate``; after the last step a loss is only a line in the log."""
        if self.is_dropped:
            return
        try:
            self._instance.terminate()
        except FmuLostError as error:
            log.warning("%s The results are complete.", str(error))

    def free(self) -> None:
        """Release the instance."""
        self._instance.free()

    def abandon(self) -> None:
        """End the process of the instance."""
        self._instance.abandon()


def _nothing() -> None:
    """The answer of an instance that is dropped."""

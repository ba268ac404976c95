"""An instance around any other, which keeps a journal of its calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import Instance, Signal, StepAnswer, Transfer, UpdateAnswer
from fmimaster.fmu.journal import (
    Entry,
    Journal,
    Transferred,
    packed,
    packed_experiment,
    packed_polynomials,
    packed_step,
    packed_time,
    renumbered,
)
from fmimaster.fmu.replay import Noise, replay
from fmimaster.inputs.polynomial import Polynomials
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType

log = logging.getLogger("fmimaster")

_LONG = 1 << 18
"""Length of the entries in bytes after which the journal begins anew, if the FMU can serialize its state."""
_LONG_FOR_ITS_STATE = 16
"""The same relative to the length of the serialized state, so that serializing stays cheap."""


class Journaled(Instance):
    """A wrapper that notes each call that has succeeded in a :class:`Journal`.

    The kernel calls it in Python. Calls that only save, restore or serialize states are not noted; a restored state cuts
    the journal back.

    Parameters
    ----------
    instance : Instance
        The other instance; :meth:`move_to` replaces it.
    serializes : bool
        Whether the journal begins anew with a serialized state now and then, if the FMU can serialize its state.
    """

    def __init__(self, instance: Instance, *, serializes: bool = True) -> None:
        super().__init__(instance.name, instance.model)
        self.journal = Journal()
        self._serializes = serializes and instance.model.capabilities.can_serialize_fmu_state
        self._bindings: list[Callable[[], None]] = []
        """Functions that bind transfers to the present instance."""
        self._given: dict[int, bytes] = {}
        """The last polynomials of each number: they are no part of the state of an FMU."""
        self._is_stepping = False
        self._places: dict[int, bool] = {}
        self._take(instance)

    @property
    def is_dropped(self) -> bool:
        """Whether the other instance no longer takes part in the run."""
        return self.instance.is_dropped

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the other instance."""
        return self.instance.notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the other instance."""
        return self.instance.warnings

    def _take(self, instance: Instance) -> None:
        self.instance = instance
        instance.clock = lambda: self.clock()
        instance.kept_from = lambda: self.kept_from()
        instance.mark_dropped = lambda: self.mark_dropped()

    def move_to(self, instance: Instance) -> Noise:
        """Replace the instance by a new one of the same FMU, which is brought to the state of the old one.

        States that the old one has saved are saved in the new one. The old one is not called any more, and not freed.

        Raises
        ------
        CallError
            If a call fails on the new instance too; the old instance stays.
        """
        noise = replay(self.journal, instance)
        self._take(instance)
        for bind in self._bindings:
            bind()
        return noise

    def repeat(self, transfers: Sequence[Transferred], entries: bytes) -> Noise:
        """Make further calls, which another instance of the same FMU has noted.

        Parameters
        ----------
        transfers, entries
            Those of its journal, which has not begun anew.
        """
        journal = self.journal
        numbers = [journal.number(transferred) for transferred in transfers]
        done = len(journal.entries)
        journal.extend(renumbered(entries, numbers))
        noise = replay(journal, self.instance, skip=done)
        self._take(self.instance)
        return noise

    def stop_noting(self) -> None:
        """Note no more calls: the state is saved in another way."""
        self.journal.close()

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A getter that notes the values, too: reading changes some FMUs."""
        act = self._bound(lambda: self.instance.getter(kind, references, values))
        of = Transferred(Entry.GET, kind, tuple(references), len(values))
        number = self.journal.number(of)

        def read() -> None:
            act[0]()
            self.journal.add(Entry.GET, packed(values), number)

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A setter that notes the values."""
        act = self._bound(lambda: self.instance.setter(kind, references, values))
        of = Transferred(Entry.SET, kind, tuple(references), len(values))
        number = self.journal.number(of)

        def write() -> None:
            act[0]()
            self.journal.add(Entry.SET, packed(values), number)

        return write

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """A function that computes directional derivatives, and notes the seed."""
        act = self._bound(
            lambda: self.instance.directional_derivative(unknowns, knowns, seed, sensitivity)
        )
        sizes = len(sensitivity), tuple(knowns), len(seed)
        of = Transferred(Entry.DERIVE, DataType.FLOAT64, tuple(unknowns), *sizes)
        number = self.journal.number(of)

        def derive() -> None:
            act[0]()
            self.journal.add(Entry.DERIVE, packed(seed), number)

        return derive

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets polynomials and notes them."""
        act = self._bound(lambda: self.instance.polynomial_setter(references))
        of = Transferred(Entry.POLYNOMIALS, DataType.FLOAT64, tuple(references), len(references))
        number = self.journal.number(of)

        def give(time: float, signal: Signal) -> None:
            act[0](time, signal)
            self._given[number] = packed_polynomials(time, cast(Polynomials, signal))
            self.journal.add(Entry.POLYNOMIALS, self._given[number], number)

        return give

    def _bound(self, make: Callable[[], Any]) -> list[Any]:
        """What a function makes, in a list: it is made again for another instance."""
        made = [make()]

        def bind() -> None:
            made[0] = make()

        self._bindings.append(bind)
        return made

    # Intervals of clocks

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that asks for intervals, which an FMU tells once, and notes that."""
        act = self._bound(lambda: self.instance.intervals(clocks, answers))
        of = Transferred(Entry.INTERVALS, DataType.CLOCK, tuple(clocks), len(clocks))
        number = self.journal.number(of)

        def ask() -> None:
            act[0]()
            self.journal.add(Entry.INTERVALS, number=number)

        return ask

    def shift(self, clock: int) -> Fraction:
        """``GetShift``; it changes nothing, and is not noted."""
        return self.instance.shift(clock)

    def set_interval(self, clock: int, interval: Fraction) -> None:
        """``SetInterval``."""
        self.instance.set_interval(clock, interval)
        self.journal.add(Entry.SET_INTERVAL, packed_time(clock, interval))

    def set_shift(self, clock: int, shift: Fraction) -> None:
        """``SetShift``."""
        self.instance.set_shift(clock, shift)
        self.journal.add(Entry.SET_SHIFT, packed_time(clock, shift))

    # Modes

    def enter_configuration_mode(self) -> None:
        """``EnterConfigurationMode``."""
        self.instance.enter_configuration_mode()
        self.journal.add(Entry.ENTER_CONFIGURATION_MODE)

    def exit_configuration_mode(self) -> None:
        """``ExitConfigurationMode``."""
        self.instance.exit_configuration_mode()
        self.journal.add(Entry.EXIT_CONFIGURATION_MODE)

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``."""
        self.instance.enter_initialization_mode(start, stop, tolerance)
        content = packed_experiment(start, stop, tolerance)
        self.journal.add(Entry.ENTER_INITIALIZATION_MODE, content)

    def enter_event_mode(self) -> None:
        """``EnterEventMode``, or the end of the initialization."""
        self.instance.enter_event_mode()
        self._is_stepping = False
        self.journal.add(Entry.ENTER_EVENT_MODE)

    def enter_step_mode(self) -> None:
        """``EnterStepMode``, or the end of the initialization."""
        self.instance.enter_step_mode()
        self._is_stepping = True
        self.journal.add(Entry.ENTER_STEP_MODE)

    def update_discrete_states(self) -> UpdateAnswer:
        """``UpdateDiscreteStates``."""
        answer = self.instance.update_discrete_states()
        self.journal.add(Entry.UPDATE)
        return answer

    # Time

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """``DoStep``."""
        self._begin_anew_if_long()
        may_go_back = self.kept_from() < time
        answer = self.instance.do_step(time, size)
        reached = None if answer is None else answer.last_successful_time
        self.journal.add(Entry.STEP, packed_step(time, size, reached, may_go_back))
        return answer

    def save(self, place: int) -> None:
        """``GetFMUState``."""
        self._begin_anew_if_long()
        self.instance.save(place)
        self.journal.save(place)
        self._places[place] = self._is_stepping

    def restore(self, place: int) -> None:
        """``SetFMUState``: the journal is cut back."""
        self.instance.restore(place)
        self.journal.restore(place)
        self._is_stepping = self._places[place]

    def serialized(self) -> bytes:
        """The present state as bytes."""
        return self.instance.serialized()

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state."""
        self.instance.deserialize(state)
        self.journal.add(Entry.DESERIALIZE, state)

    def _begin_anew_if_long(self) -> None:
        """Let the journal begin with a serialized state: before the first step, and when it has become long."""
        journal = self.journal
        if not (self._serializes and self._is_stepping):
            return
        if journal.state is not None:
            longest = max(_LONG, _LONG_FOR_ITS_STATE * len(journal.state))
            if len(journal.entries) <= longest:
                return
        try:
            state = self.instance.serialized()
        except CallError as error:
            self._serializes = False
            log.warning(
                "The state of '%s' cannot be serialized, although the FMU declares it: %s Its calls are recorded instead.",
                self.name,
                str(error),
            )
            return
        journal.begin_anew(state)
        for number, content in self._given.items():
            journal.add(Entry.POLYNOMIALS, content, number)

    # The end

    def terminate(self) -> None:
        """``Terminate``."""
        self.instance.terminate()

    def reset(self) -> None:
        """``Reset``: the journal begins at the instantiation again."""
        self.instance.reset()
        self.journal.reset()
        self._given.clear()
        self._is_stepping = False

    def free(self) -> None:
        """Free the other instance."""
        self.instance.free()

    def abandon(self) -> None:
        """End the process of the other instance."""
        self.instance.abandon()

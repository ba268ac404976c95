"""An instance around any other, which keeps a journal of its calls, and the repetition of the journal on a new instance.

The repetition compares the values that are read with those that were read before, and so measures how exact it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import CallError
from fmimaster.fmu.around import MAKERS, Act, Around
from fmimaster.fmu.instance import Instance, StepAnswer
from fmimaster.fmu.journal import (
    History,
    Journal,
    Noted,
    entries_of,
    noted_transfer,
    packed_arguments,
    packed_step,
    renumbered,
    unpacked,
    unpacked_arguments,
    unpacked_polynomials,
    unpacked_step,
)
from fmimaster.system.clocks import Intervals

log = logging.getLogger("fmimaster")

_LONG = 1 << 18
"""Length of the entries in bytes after which the journal begins anew, if the FMU can serialize its state."""
_LONG_FOR_ITS_STATE = 16
"""The same relative to the length of the serialized state, so that serializing stays cheap."""


_NOT_NOTED = frozenset({"shift", "serialized", "terminate", "free", "abandon"})
"""Methods that change nothing, or after which nothing is called."""
_OTHERWISE_NOTED = frozenset({"do_step", "save", "restore", "reset"})
"""Methods of :class:`Journaled`."""
_IS_STEPPING = {"enter_event_mode": False, "enter_step_mode": True}


class Journaled(Around):
    """A wrapper that notes each call that has succeeded in a :class:`Journal`.

    Calls that only save, restore or serialize states are not noted; a restored state cuts the journal back.

    Parameters
    ----------
    instance : Instance
        The other instance; :meth:`move_to` replaces it.
    serializes : bool
        Whether the journal begins anew with a serialized state now and then, if the FMU can serialize its state.
    """

    def __init__(self, instance: Instance, *, serializes: bool = True) -> None:
        self.journal = Journal()
        self._step = self.journal.number(Noted("do_step"))
        self._serializes = serializes and instance.model.capabilities.can_serialize_fmu_state
        self._given: dict[int, bytes] = {}
        """The last polynomials of each number: they are no part of the state of an FMU."""
        self._is_stepping = False
        self._places: dict[int, bool] = {}
        super().__init__(instance)

    def move_to(self, instance: Instance) -> Noise:
        """Replace the instance by a new one of the same FMU, which is brought to the state of the old one.

        States that the old one has saved are saved in the new one. The old one is not called any more, and not freed.

        Raises
        ------
        CallError
            If a call fails on the new instance too; the old instance stays.
        """
        noise = replay(self.journal, instance)
        self.take(instance)
        return noise

    def repeat(self, noted: Sequence[Noted], entries: bytes) -> Noise:
        """Make further calls, which another instance of the same FMU has noted.

        Parameters
        ----------
        noted, entries
            Those of its journal, which has not begun anew.
        """
        journal = self.journal
        numbers = [journal.number(one) for one in noted]
        done = len(journal.entries)
        journal.extend(renumbered(entries, numbers))
        noise = replay(journal, self.instance, skip=done)
        self.take(self.instance)
        return noise

    def stop_noting(self) -> None:
        """Note no more calls: the state is saved in another way."""
        self.journal.close()

    def around(self, name: str, made: tuple[Any, ...], act: Act) -> Act:
        """The call, and its entry in the journal."""
        if name in _NOT_NOTED | _OTHERWISE_NOTED:
            return act
        noted, content = noted_transfer(name, *made) if made else (Noted(name), packed_arguments)
        number = self.journal.number(noted)

        def call(*arguments: Any) -> Any:
            answer = act(*arguments)
            found = content(*arguments)
            if name == "polynomial_setter":
                self._given[number] = found
            self._is_stepping = _IS_STEPPING.get(name, self._is_stepping)
            self.journal.add(number, found)
            return answer

        return call

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """``DoStep``, with its end in the journal."""
        self._begin_anew_if_long()
        may_go_back = self.kept_from() < time
        answer = super().do_step(time, size)
        reached = None if answer is None else answer.last_successful_time
        self.journal.add(self._step, packed_step(time, size, reached, may_go_back))
        return answer

    def save(self, place: int) -> None:
        """``GetFMUState``, for which the journal keeps what led there."""
        self._begin_anew_if_long()
        super().save(place)
        self.journal.save(place)
        self._places[place] = self._is_stepping

    def restore(self, place: int) -> None:
        """``SetFMUState``, which cuts the journal back."""
        super().restore(place)
        self.journal.restore(place)
        self._is_stepping = self._places[place]

    def reset(self) -> None:
        """``Reset``, after which the journal is empty."""
        super().reset()
        self.journal.reset()
        self._given.clear()
        self._is_stepping = False

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
            journal.add(number, content)


@dataclass(frozen=True, slots=True)
class Noise:
    """The largest difference between values that were read in a replay and those that were read before.

    Parameters
    ----------
    largest : float
        Relative to the largest absolute value of the variable; inf for a variable that is no number, and for NaN.
    variable : str
        The variable with this difference; empty if there is none.
    time : float
        In s, of the step before the first difference of this variable.
    reads : int
        Number of values that were compared.
    """

    largest: float = 0.0
    variable: str = ""
    time: float = 0.0
    reads: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether all values were the same in every bit."""
        return not self.variable

    def __str__(self) -> str:
        if self.is_exact:
            return f"all {self.reads} values that were read again are equal"
        return f"'{self.variable}' differs by up to {self.largest:.3g} (relative), first at t = {self.time:.12g} s"


@dataclass
class _Compared:
    """The values of one GET: scale and difference of each element, and the time in s of the first difference."""

    scale: NDArray[np.float64]
    difference: NDArray[np.float64]
    first: NDArray[np.float64]


def replay(journal: Journal, instance: Instance, *, skip: int = 0) -> Noise:
    """Bring an instance to the present state of a journal, and save the states that the journal has saved.

    Parameters
    ----------
    instance : Instance
        A new one of the same FMU, in Instantiated.
    skip : int
        Length in bytes of the first entries that the instance has executed already.

    Raises
    ------
    CallError
        If a call fails, or a step ends at another time than before.
    """
    player = _Player(journal, instance)
    player.play(journal.opening)
    for history in journal.histories():
        player.play_history(history, skip)
    return player.noise()


class _Player:
    """Calls an instance by entries of a journal."""

    def __init__(self, journal: Journal, instance: Instance) -> None:
        self._instance = instance
        self._noted = journal.noted
        self._acts: dict[int, tuple[NDArray[Any], Any]] = {}
        self._compared: dict[int, _Compared] = {}
        self._time = 0.0
        self._reads = 0
        self._spare = 1 + max(journal.places, default=-1)
        """A place that the journal does not use."""
        self._may_go_back = False

    def play_history(self, history: History, skip: int) -> None:
        """Go through a history, and save the states at its places."""
        if history.state is not None:
            self._instance.deserialize(history.state)
        at = skip
        for end, place, further in history.saved:
            if end < at:  # the instance has saved it itself
                continue
            self.play(history.entries[at:end])
            at = end
            if further:
                self._instance.save(self._spare)
                self.play(further)
            self._instance.save(place)
            if further:
                self._instance.restore(self._spare)
        self.play(history.entries[at : history.end])

    def play(self, entries: bytes) -> None:
        """Make the calls of some entries."""
        instance = self._instance
        instance.clock = lambda: self._time
        instance.kept_from = lambda: -inf if self._may_go_back else inf
        for number, content in entries_of(entries):
            method = self._noted[number].method
            if method in MAKERS:
                self._transfer(number, content)
            elif method == "do_step":
                self._step(content)
            else:
                getattr(instance, method)(*unpacked_arguments(method, content))

    def _step(self, content: bytes) -> None:
        time, size, reached, self._may_go_back = unpacked_step(content)
        answer = self._instance.do_step(time, size)
        self._time = time + size
        now = None if answer is None else answer.last_successful_time
        if now != reached and not (now is not None and isnan(now)):
            raise CallError(
                f"The calls of '{self._instance.name}' cannot be repeated: its step from t = {time:.12g} s by {size:.6g} s "
                f"{_ended(now)}, but before it {_ended(reached)}. The FMU does not "
                "give the same results for the same inputs.",
                instance=self._instance.name,
                function="DoStep",
                status="not repeated",
                time=time,
            )

    def _transfer(self, number: int, content: bytes) -> None:
        noted = self._noted[number]
        if number not in self._acts:
            self._acts[number] = self._bound(noted)
        values, act = self._acts[number]
        match noted.method:
            case "polynomial_setter":
                act(*unpacked_polynomials(content, len(noted.references)))
            case "intervals":
                act()
            case "getter":
                act()
                self._compare(number, values, unpacked(noted.kind, content))
            case _:
                values[:] = unpacked(noted.kind, content)
                act()

    def _bound(self, noted: Noted) -> tuple[NDArray[Any], Any]:
        """An array, and the function that transfers its values, or gives polynomials."""
        method, kind, references, size, knowns, n_knowns = noted
        make = getattr(self._instance, method)
        values = np.zeros(size, kind.dtype)
        match method:
            case "intervals":
                return values, make(references, Intervals.of(size))
            case "directional_derivative":
                seed = np.zeros(n_knowns)
                return seed, make(references, knowns, seed, np.zeros(size))
            case "polynomial_setter":
                return values, make(references)
            case _:
                return values, make(kind, references, values)

    def _compare(self, number: int, now: NDArray[Any], before: NDArray[Any]) -> None:
        self._reads += len(now)
        n = len(now)
        compared = self._compared.get(number)
        if compared is None:
            compared = _Compared(np.zeros(n), np.zeros(n), np.full(n, inf))
            self._compared[number] = compared
        is_number = now.dtype.kind in "fiub"
        if is_number:
            compared.scale = np.fmax(compared.scale, np.abs(before.astype(float)))
        if now.dtype != object and now.tobytes() == before.tobytes():
            return
        differs = now != before
        if is_number:
            differs &= ~(np.isnan(now.astype(float)) & np.isnan(before.astype(float)))
            difference = np.abs(now.astype(float) - before.astype(float))
            difference = np.where(np.isnan(difference), inf, difference)
        else:
            difference = np.full(n, inf)
        compared.difference = np.maximum(compared.difference, np.where(differs, difference, 0.0))
        compared.first = np.minimum(compared.first, np.where(differs, self._time, inf))

    def noise(self) -> Noise:
        """The largest difference so far."""
        worst = Noise(reads=self._reads)
        for number, compared in self._compared.items():
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(
                    compared.difference > 0, compared.difference / compared.scale, 0.0
                )
            k = int(np.argmax(relative))
            if relative[k] > worst.largest:
                name = self._name(self._noted[number], k)
                worst = Noise(float(relative[k]), name, float(compared.first[k]), self._reads)
        return worst

    def _name(self, noted: Noted, element: int) -> str:
        """Full name of the variable of an element."""
        variables = {v.value_reference: v for v in self._instance.model.variables}
        for reference in noted.references:
            variable = variables[reference]
            if element < variable.size:
                return f"{self._instance.name}.{variable.name}"
            element -= variable.size
        raise IndexError(element)


def _ended(reached: float | None) -> str:
    return "was completed" if reached is None else f"ended at t = {reached:.12g} s"

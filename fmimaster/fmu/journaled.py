"""An instance around any other, which keeps a journal of its calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from fmimaster.base.errors import CallError
from fmimaster.fmu.around import Act, Around
from fmimaster.fmu.instance import Instance
from fmimaster.fmu.journal import (
    Journal,
    Noted,
    packed,
    packed_arguments,
    packed_polynomials,
    packed_step,
    renumbered,
)
from fmimaster.fmu.replay import Noise, replay
from fmimaster.system.model import DataType

log = logging.getLogger("fmimaster")

_LONG = 1 << 18
"""Length of the entries in bytes after which the journal begins anew, if the FMU can serialize its state."""
_LONG_FOR_ITS_STATE = 16
"""The same relative to the length of the serialized state, so that serializing stays cheap."""


_NOT_NOTED = frozenset({"shift", "serialized", "terminate", "free", "abandon"})
"""Methods that change nothing, or after which nothing is called."""
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
        if name in _NOT_NOTED:
            return act
        special = {
            "do_step": self._step,
            "save": self._save,
            "restore": self._restore,
            "reset": self._reset,
        }
        if name in special:
            return special[name](act)
        noted, content = _transferred(name, *made) if made else (Noted(name), _arguments)
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

    def _step(self, act: Act) -> Act:
        number = self.journal.number(Noted("do_step"))

        def step(time: float, size: float) -> Any:
            self._begin_anew_if_long()
            may_go_back = self.kept_from() < time
            answer = act(time, size)
            reached = None if answer is None else answer.last_successful_time
            self.journal.add(number, packed_step(time, size, reached, may_go_back))
            return answer

        return step

    def _save(self, act: Act) -> Act:
        def save(place: int) -> None:
            self._begin_anew_if_long()
            act(place)
            self.journal.save(place)
            self._places[place] = self._is_stepping

        return save

    def _restore(self, act: Act) -> Act:
        def restore(place: int) -> None:
            act(place)
            self.journal.restore(place)
            self._is_stepping = self._places[place]

        return restore

    def _reset(self, act: Act) -> Act:
        def reset() -> None:
            act()
            self.journal.reset()
            self._given.clear()
            self._is_stepping = False

        return reset

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


def _arguments(*arguments: Any) -> bytes:
    return packed_arguments(arguments)


def _transferred(name: str, *made: Any) -> tuple[Noted, Callable[..., bytes]]:
    """What is noted of a function that a method has made, and what packs the content of its entries.

    Reading changes some FMUs, and an FMU tells intervals once: these are noted too.
    """
    match name:
        case "directional_derivative":
            unknowns, knowns, seed, sensitivity = made
            sizes = len(sensitivity), tuple(knowns), len(seed)
            return Noted(name, DataType.FLOAT64, tuple(unknowns), *sizes), lambda: packed(seed)
        case "polynomial_setter":
            references = tuple(made[0])
            return Noted(name, DataType.FLOAT64, references, len(references)), packed_polynomials
        case "intervals":
            clocks = tuple(made[0])
            return Noted(name, DataType.CLOCK, clocks, len(clocks)), bytes
        case _:
            kind, references, values = made
            return Noted(name, kind, tuple(references), len(values)), lambda: packed(values)

"""The base class of elements of semantic adaptation: their values, modes, and states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, StepAnswer, Transfer, UpdateAnswer
from fmimaster.fmu.kernel_entry import E, KernelEntries
from fmimaster.fmu.kernel_memory import ElementValues
from fmimaster.system.adaptation import INPUT, TICK, Adaptation
from fmimaster.system.model import DataType

Element = TypeVar("Element", bound=Adaptation)


class RememberedValue(NamedTuple):
    """A value that an element remembers, and which is no variable."""

    name: str
    type: DataType
    start: float | bool = 0


class AdaptationInstance(Instance, Generic[Element]):
    """An element in one run. Its whole state is its values by name.

    Active clocks are the values of clocks. They become inactive in ``UpdateDiscreteStates``.

    ``kernel/adaptation.c`` has the same in C, and works on the same values: a tick of a sample and hold takes 5 us, and
    35 us if it is called in Python. Elements are instances, not hooks, so no algorithm knows them.

    Parameters
    ----------
    element : Adaptation

    Attributes
    ----------
    values : Values
        Of the variables by their value references, then of the states.
    clocks : list of str
        Names of the clocks.
    """

    twin: ClassVar[str]
    """Name of its kind in the kernel."""

    def __init__(self, name: str, element: Element) -> None:
        super().__init__(name, element.model())
        self.element = element
        variables = self.model.variables
        self.values = ElementValues(
            {v.name: v.type for v in variables} | {s.name: s.type for s in self._states()}
        )
        self.reset()
        self.clocks = [v.name for v in variables if v.type is DataType.CLOCK]
        self._names = {v.value_reference: v.name for v in variables}
        self._places: dict[int, NDArray[np.uint64]] = {}

    def kernel_entry(self, kernel: KernelEntries[E]) -> E:
        """What the kernel calls it by: its twin."""
        return kernel.of_element(self)

    # What an element defines

    def _states(self) -> Iterator[RememberedValue]:
        """Its states."""
        return iter(())

    def _evaluate(self) -> None:
        """Set outputs that depend on the present inputs and on active clocks."""

    @abstractmethod
    def _update(self) -> bool:
        """``UpdateDiscreteStates``: set outputs and states; clocks are still as before. Returns whether there is another
        event in the next iteration."""

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables."""
        del kind
        names = [self._names[reference] for reference in references]

        def read() -> None:
            self._evaluate()
            for k, name in enumerate(names):
                values[k] = self.values[name]

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets inputs, and makes input clocks active."""
        del kind
        names = [self._names[reference] for reference in references]

        def write() -> None:
            for name, value in zip(names, values.tolist(), strict=True):
                self.values[name] = value

        return write

    def partials(self, unknowns: Sequence[int], knowns: Sequence[int]) -> NDArray[np.float64]:
        """Partial derivatives of variables by others, shape (unknowns, knowns): distances change with the input."""
        signs = {t.distance: t.sign for t in self.element.thresholds}
        factors = [
            [-signs.get(self._names[y], 0) * (self._names[u] == INPUT) for u in knowns]
            for y in unknowns
        ]
        return np.array(factors, dtype=np.float64)

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """A function that computes how distances from thresholds change with the input."""
        columns = self.partials(unknowns, knowns).T

        def compute() -> None:
            sensitivity[:] = 0.0
            for column, change in zip(columns, seed, strict=True):
                sensitivity[:] += column * change

        return compute

    # Modes and time

    can_reset = True

    def reset(self) -> None:
        """The start values, for variables and states."""
        self.values.memory[:] = 0
        for v in self.model.variables:
            if v.start:
                self.values[v.name] = v.start[0]
        for s in self._states():
            self.values[s.name] = s.start

    def enter_event_mode(self) -> None:
        """Nothing changes until a clock is active or the input is another one."""

    def update_discrete_states(self) -> UpdateAnswer:
        """The event; after it all clocks are inactive, except those of an event in the next iteration."""
        self._evaluate()
        again = self._update()
        for clock in self.clocks:
            self.values[clock] = False
        if again:
            self.values[TICK] = True
        return UpdateAnswer(wants_update=again)

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Nothing changes with time alone."""
        return None

    def save(self, place: int) -> None:
        """Save the values."""
        self._places[place] = self.values.memory.copy()

    def restore(self, place: int) -> None:
        """Restore the values."""
        self.values.memory[:] = self._places[place]

    def serialized(self) -> bytes:
        """The values."""
        return self.values.memory.tobytes()

    def deserialize(self, state: bytes) -> None:
        """Restore the values."""
        self.values.memory[:] = np.frombuffer(state, np.uint64)

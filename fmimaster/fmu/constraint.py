"""A constraint as an instance: it compares its inputs; the solver of loops finds the force."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fmimaster.base.errors import ConstraintError
from fmimaster.fmu.instance import Instance, StepAnswer, Transfer
from fmimaster.system.constraints import FORCE, GAP, INPUTS, SLIP, SLOPE
from fmimaster.system.model import DataType, Model

_LEFT = {FORCE, SLOPE}
"""Outputs that the solver writes into the value store; reading leaves them unchanged."""


class ConstraintInstance(Instance):
    """Differences of positions and of velocities.

    The force is an unknown of a loop. The solver writes it into the value store, and reading the outputs leaves it
    unchanged; only in Initialization Mode the instance provides its start value.

    Parameters
    ----------
    tolerance : float
        Largest difference of positions and velocities at the start.
    """

    def __init__(self, name: str, model: Model, tolerance: float) -> None:
        super().__init__(name, model)
        self._tolerance = tolerance
        self._names = {v.value_reference: v.name for v in model.variables}
        self._values = {v.name: 0.0 for v in model.variables if v.start is not None}
        self._places: dict[int, dict[str, float]] = {}
        self._is_started = False

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads the differences, and in Initialization Mode the force."""
        del kind
        names = [self._names[reference] for reference in references]

        def read() -> None:
            for k, name in enumerate(names):
                if name in INPUTS:
                    values[k] = self._difference(name)
                elif name not in _LEFT or not self._is_started:
                    values[k] = self._values[name]

        return read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets the compared inputs, or the start value of the force."""
        del kind
        names = [self._names[reference] for reference in references]

        def write() -> None:
            self._values.update(zip(names, values.tolist(), strict=True))

        return write

    def _difference(self, name: str) -> float:
        first, second = INPUTS[name]
        return self._values[first] - self._values[second]

    def enter_step_mode(self) -> None:
        """End of the initialization: the ends must agree, because no smooth force could bring them together.

        Raises
        ------
        ConstraintError
            If they do not.
        """
        self._is_started = True
        known = [name for name in INPUTS if self.model.variable(name) is not None]
        differences = {name: self._difference(name) for name in known}
        if all(abs(d) <= self._tolerance for d in differences.values()):
            return
        what = {GAP: "positions", SLIP: "velocities"}
        found = " and ".join(
            f"the {what[name]} of its ends differ by {d:.6g}"
            for name, d in differences.items()
            if not abs(d) <= self._tolerance
        )
        raise ConstraintError(
            f"The constraint '{self.name}' is not met at the start: {found}. They may differ by {self._tolerance:g}, "
            "because a force that removes a difference within one step does not decay. Change start "
            "values of the "
            "components at its ends.",
            constraint=self.name,
            differences=differences,
        )

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Nothing changes with time."""
        return None

    def save(self, place: int) -> None:
        """Save the compared values."""
        self._places[place] = dict(self._values)

    def restore(self, place: int) -> None:
        """Restore the compared values."""
        self._values.update(self._places[place])

    def serialized(self) -> bytes:
        """The compared values."""
        return json.dumps(self._values).encode()

    def deserialize(self, state: bytes) -> None:
        """Restore the compared values."""
        self._values.update(json.loads(state))

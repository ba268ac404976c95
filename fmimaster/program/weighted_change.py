"""Change of outputs since a KEEP as one number: error norms of step doubling and of predictions."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.numerics.sums import add_part
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType


@dataclass(frozen=True, slots=True, eq=False)
class WeightedChange(Hook):
    """Root mean square of the weighted change of outputs since a KEEP → a slot; the output with the largest change →
    another slot.

    ``sqrt(mean(((y - kept) / (absolute * nominal + relative * abs(y))) ** 2)) / divisor``

    Parameters
    ----------
    buffer : int
        Of the KEEP.
    slots : shape (n,), integers
        The outputs, as indices into those of type Float64; at least one.
    nominals : shape (n,)
        Their nominal values.
    target, worst : int
        Indices into the Float64 outputs: of the result, and of the number of the output that has changed most.
    absolute, relative : float
        Tolerances; a change of this size gives the result 1.
    divisor : float
        ``2 ** p - 1`` converts the difference between one step and its two halves, of order p, to the error of the
        halves.

    Source: the norm of Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.4, eq. (4.11).
    """

    buffer: int
    slots: NDArray[np.int64]
    nominals: NDArray[np.float64]
    target: int
    worst: int
    absolute: float
    relative: float
    divisor: float = 1.0
    name: ClassVar[str] = "weighted change of outputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write the result."""
        outputs = store.outputs[DataType.FLOAT64]
        now, then = outputs.tolist(), store.buffers[self.buffer][0][DataType.FLOAT64].tolist()
        sums, worst = [0.0, 0.0], [0]
        for i, (k, nominal) in enumerate(
            zip(self.slots.tolist(), self.nominals.tolist(), strict=True)
        ):
            part = (now[k] - then[k]) / (self.absolute * nominal + self.relative * abs(now[k]))
            add_part(part, part * part, i, sums, worst)
        outputs[self.target] = sqrt(sums[0] / len(self.slots)) / self.divisor
        outputs[self.worst] = float(worst[0])
        return False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return Twin(
            "weighted change",
            numbers={
                "n": len(self.slots),
                "buffer": self.buffer,
                "target": self.target,
                "worst": self.worst,
                "absolute": self.absolute,
                "relative": self.relative,
                "divisor": self.divisor,
            },
            arrays={"slots": self.slots, "nominals": self.nominals},
        )

"""Communication points that are known in advance: the executor can do many steps to them in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.instants.instant import Instant
from fmimaster.record.causes import Cause


class PointsAhead(ABC):
    """The successive points that a step-size rule proposes, while no step ends elsewhere.

    Attributes
    ----------
    cause : Cause
        Cause of the end of steps at these points.
    """

    __slots__ = ()
    cause: ClassVar[Cause]

    @abstractmethod
    def seconds_between(self, first: Instant, last: Instant, most: int) -> NDArray[np.float64]:
        """Points after ``first`` and before ``last`` in s, at most ``most``, up to two with the same double.

        No point is so near to ``last`` that the step between them would be too short.
        """

    @abstractmethod
    def point_after(self, first: Instant, n: int) -> Instant:
        """The n-th point after an instant, counted from 0."""

    def interval_to(self, point: Instant) -> int:
        """Which of the intervals that repeat ends at a point, counted from 0."""
        del point
        return 0

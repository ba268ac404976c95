"""A run in real time: a hook of accepted steps waits until the wall clock shows their end, and notes how late they are."""

from __future__ import annotations

import time

import numpy as np

from fmimaster.base.errors import SimulationError
from fmimaster.program.hook import FunctionHook, Hook, Twin
from fmimaster.program.store import ValueStore

SECOND = 1e9
"""[ns]"""

NEVER = 4e9
"""Wall time in s after which no clock of 64 bits shows the end of a step."""

SLICE = 50_000_000
"""Wall time in ns of a sleep: so soon it is seen that the run must end."""

SINCE, STEPS, LATE, SUM, LARGEST, LAST, WAITED = range(7)
"""Places in :attr:`RealTime.numbers`; the kernel has the same."""

_LONGEST = int(np.iinfo(np.int64).max)


class RealTime(Hook):
    """Waits until the wall clock shows the end of a step.

    The clock starts when the first step is ready, and shows the begin of that step then. It is absolute: what is late is
    caught up.

    Parameters
    ----------
    factor : float
        Simulated seconds per second of wall time.
    limit : float or None, in s
        A step that is later ends the run; None: the run goes on.

    Attributes
    ----------
    numbers : shape (7,), int64
        When the clock started, 0 if it stands; numbers of steps and of those that were not ready in time; the sum of all
        latenesses, the largest and the last one; how long all steps have waited. Times are wall times in ns.
    """

    name = "real time"

    def __init__(self, factor: float, limit: float | None = None) -> None:
        self.factor = float(factor)
        self.limit = _LONGEST if limit is None or limit >= NEVER else int(limit * SECOND)
        self.numbers = np.zeros(7, np.int64)
        self._began_at = np.zeros(1)
        self._ends = np.zeros(1, np.intc)

    def begin_at(self, time_of_run: float) -> None:
        """The next step begins at this time in s; no effect if the clock runs."""
        if not self.numbers[SINCE]:
            self._began_at[0] = time_of_run

    def stop_clock(self) -> None:
        """The next step starts it anew."""
        self.numbers[SINCE] = 0

    def go_on_from(self, before: RealTime) -> None:
        """Take over the clock and the numbers of another hook of the same run."""
        self.numbers[:], self._began_at[:] = before.numbers, before._began_at

    def stop_waiting(self) -> None:
        """The run is about to end; for any thread."""
        self._ends[0] = True

    def __call__(self, store: ValueStore) -> bool:
        """Wait for the end of the step, and note how late it is."""
        n, ready = self.numbers, time.perf_counter_ns()
        n[SINCE] = n[SINCE] or ready
        now, due = ready, self._due_at(store.interval[1])
        n[STEPS] += 1
        n[LATE] += ready > due
        while now < due and not self._ends[0]:
            time.sleep(min(due - now, SLICE) / SECOND)
            now = time.perf_counter_ns()
        n[WAITED] += now - ready
        n[LAST] = max(now - due, 0)
        n[SUM] += n[LAST]
        n[LARGEST] = max(n[LARGEST], n[LAST])
        if n[LAST] > self.limit:
            self._fail(store)
        return False

    def _due_at(self, time_of_run: float) -> int:
        """When the wall clock shows a time of the run in s."""
        seconds = (time_of_run - float(self._began_at[0])) / self.factor
        return int(self.numbers[SINCE]) + int(seconds * SECOND) if seconds < NEVER else _LONGEST

    def _fail(self, store: ValueStore) -> None:
        end, late = store.interval[1], int(self.numbers[LAST]) / SECOND
        raise SimulationError(
            f"The step to t = {end:.12g} s has ended {1e3 * late:.3g} ms after its time, by a wall clock at "
            f"{self.factor:g} x real time; lateness_limit (--lateness-limit) allows {1e3 * self.limit / SECOND:.3g} ms. "
            "Use a smaller real_time_factor (--real-time-factor), longer steps, or a larger limit.",
            time=end,
        )

    def remembered(self) -> tuple[float, ...]:
        """The numbers for statistics; a run that continues starts its clock anew."""
        return tuple(self.numbers.tolist())

    def remember(self, numbers: tuple[float, ...]) -> None:
        """Continue with such numbers."""
        self.numbers[:] = numbers
        self.stop_clock()

    def begin_anew(self) -> None:
        """The clock stands, and no step was made."""
        self.numbers[:], self._ends[:] = 0, False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return Twin(
            "real time",
            {"factor": self.factor, "limit": self.limit},
            {"began_at": self._began_at, "numbers": self.numbers, "ends": self._ends},
            {"too_late": FunctionHook("too late", self._fail)},
        )

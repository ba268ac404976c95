"""How long the process of an isolated FMU may take."""

from __future__ import annotations

from math import inf
from time import monotonic


class Deadline:
    """The time at which a call must have returned.

    Parameters
    ----------
    seconds : float
        From now on; inf for no limit.
    process : int, optional
        Number of a process that may wait for a processor longer: on a loaded machine it is healthy although it is late.
        Default: wall time, as users set it.
    """

    def __init__(self, seconds: float, process: int | None = None) -> None:
        self._until = monotonic() + seconds
        self._process = process
        self._waited = 0.0 if process is None or seconds == inf else _waited(process)

    @property
    def left(self) -> float:
        """Time in s until it must be looked at again."""
        return self._until - monotonic()

    @property
    def has_passed(self) -> bool:
        """Whether the process has had its time."""
        if self._process is not None and self.left <= 0.0:
            waited = _waited(self._process)
            self._until += waited - self._waited
            self._waited = waited
        return self.left <= 0.0


def _waited(process: int) -> float:
    """Time in s in which the main thread of a process was ready and had no processor; 0 where Linux does not tell."""
    try:
        with open(f"/proc/{process}/schedstat") as counts:
            return int(counts.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0

"""How often checkpoints are written."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError

USUAL_WALL_TIME = 60.0
"""[s] Wall time between checkpoints: at most one minute of computing is lost."""


@dataclass(frozen=True, slots=True)
class CheckpointInterval:
    """Time between two checkpoints: the next one is written when one of both has passed.

    Parameters
    ----------
    time, wall : float
        Time of the run and wall time, in s; inf for no limit.
    """

    time: float = inf
    wall: float = inf

    def is_over(self, time: float, wall: float) -> bool:
        """Whether the next checkpoint is due, so many s of time and of wall time after the last one."""
        return time >= self.time or wall >= self.wall


def interval_of(
    given: float | str | None, where: str = "checkpoint_interval"
) -> CheckpointInterval:
    """The interval that a user has given: a number in s of the time of the run, or ``"time=0.5,wall=60"``.

    Raises
    ------
    OptionError
    """
    if given is None:
        return CheckpointInterval(wall=USUAL_WALL_TIME)
    pairs: list[tuple[str, Any]] = [("time", given)]
    if isinstance(given, str) and "=" in given:
        pairs = [(key, value) for key, _, value in (p.partition("=") for p in given.split(","))]
    found: dict[str, float] = {}
    for key, value in pairs:
        name, seconds = key.strip(), _number(value)
        if name not in ("time", "wall") or name in found or not 0 < seconds < inf:
            raise OptionError(
                f"{where}: {given!r}, expected a positive number in s of the time of the run, such as 0.5, or a wall time, "
                "such as 'wall=60', or both: 'time=0.5,wall=60'."
            )
        found[name] = seconds
    return CheckpointInterval(**found)


def _number(value: Any) -> float:
    """A number, or NaN."""
    try:
        return nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return nan

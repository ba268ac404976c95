"""How often checkpoints are written."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

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
    if isinstance(given, str) and "=" in given:
        found: dict[str, float] = {}
        for pair in given.split(","):
            key, _, value = (part.strip() for part in pair.partition("="))
            if key not in ("time", "wall") or key in found:
                raise _wrong(where, given)
            found[key] = _seconds(value, where, given)
        return CheckpointInterval(**found)
    return CheckpointInterval(time=_seconds(given, where, given))


def _seconds(value: object, where: str, given: object) -> float:
    try:
        if isinstance(value, bool):
            raise _wrong(where, given)
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _wrong(where, given) from None
    if not 0 < seconds < inf:
        raise _wrong(where, given)
    return seconds


def _wrong(where: str, given: object) -> OptionError:
    return OptionError(
        f"{where}: {given!r}, expected a positive number in s of the time of the run, such as 0.5, or a wall time, such "
        "as 'wall=60', or both: 'time=0.5,wall=60'."
    )

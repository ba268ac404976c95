"""The relative tolerance passed to each FMU, decided in this one place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from fmimaster.system.model import Model

NO_TOLERANCE: Literal["none"] = "none"
"""Tolerance of a run in which no tolerance is passed to FMUs."""


class Origin(Enum):
    """Origin of a tolerance; the first origin with a tolerance is used."""

    OPTION = "settings"
    SYSTEM = "system"
    FMU = "FMU"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A relative tolerance, or none, and where it comes from."""

    value: float | None = None
    """None: no tolerance is passed."""
    origin: Origin | None = None
    """None if there is no tolerance because neither the user nor the system nor the FMU gives one."""


def tolerance_of_run(
    given: float | Literal["none"] | None, described: float | None
) -> Tolerance | None:
    """The tolerance for all FMUs: that of the user, otherwise that of the system; None if each FMU gets its own."""
    if given is not None:
        return Tolerance(None if given == NO_TOLERANCE else float(given), Origin.OPTION)
    return None if described is None else Tolerance(described, Origin.SYSTEM)


def own_tolerance(model: Model) -> Tolerance:
    """The tolerance of an FMU's own default experiment."""
    own = model.default_experiment.tolerance
    return Tolerance() if own is None else Tolerance(own, Origin.FMU)

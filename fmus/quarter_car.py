"""Systems with power bonds, as SSP: the quarter car in both splits, and a seat on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Car:
    """A system of quarter-car FMUs: the template of its SSD, and what build.py puts in."""

    template: str
    models: tuple[str, ...]
    stop_time: str
    tolerances: Mapping[str, str]
    """Of the bonds, by the places in the template: those of ECCO that give a mean step of 1 ms."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Parameters by component; others keep their start values."""


_SPLIT_A = ("QuarterCarChassisA", "QuarterCarWheelA")
_SPLIT_B = ("QuarterCarChassisB", "QuarterCarWheelB")
_NONLINEAR = {"dc": "900", "nd": "1.5"}

ALL = {
    "quarter-car-a": Car("quarter-car-a", _SPLIT_A, "4", {"tolerance": "2.8e-6"}),
    "quarter-car-b": Car("quarter-car-b", _SPLIT_B, "4", {"tolerance": "9.1e-7"}),
    "quarter-car-a-nonlinear": Car(
        "quarter-car-a", _SPLIT_A, "2", {"tolerance": "7.5e-6"}, {"wheel": _NONLINEAR}
    ),
    "quarter-car-b-nonlinear": Car(
        "quarter-car-b", _SPLIT_B, "2", {"tolerance": "2.4e-5"}, {"chassis": _NONLINEAR}
    ),
    "seat-chain": Car(
        "seat-chain",
        ("QuarterCarChassisA", "QuarterCarSeatedChassis", "QuarterCarWheelA"),
        "4",
        {"seat_tolerance": "2e-5", "tolerance": "2e-6"},
        {"seat": {"mc": "80"}},
    ),
}
"""Sadjina et al. (2017), Energy conservation and power bonds in co-simulations, section 5; the chain is ours."""

COMPONENTS = ("chassis", "seat", "wheel")
"""The components that a template has places for values of."""

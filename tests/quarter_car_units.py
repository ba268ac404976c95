"""The linear quarter car of energy.md 3 as FMUs in Python: chassis and wheel in both splits, by forward Euler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from python_fmu import PythonFmu

from fmimaster.system.description import Port, PowerBond
from fmimaster.system.model import Unit

MICRO_STEPS = 10
CHASSIS_MASS, WHEEL_MASS = 400.0, 40.0
"""In kg."""
CHASSIS_STIFFNESS, WHEEL_STIFFNESS = 15000.0, 150000.0
"""In N/m."""
DAMPING = 1000.0
"""In Ns/m."""
ROAD = 0.1
"""Height of the road in m from the start on."""
NEWTON = Unit("N", (1, 1, -2, 0, 0, 0, 0, 0))
SPEED = Unit("m/s", (0, 1, -1, 0, 0, 0, 0, 0))


def chassis_a(**more: Any) -> PythonFmu:
    """Chassis of split A: takes a force, integrates it exactly."""

    def step(v: Any, h: float) -> None:
        v.vc = v.vc + v.force * h / CHASSIS_MASS

    return PythonFmu(
        "chassis",
        inputs={"force": 0.0},
        states={"vc": 0.0},
        outputs={"velocity": lambda v: v.vc},
        step=step,
        attributes={"force": {"unit": NEWTON}, "velocity": {"unit": SPEED}},
        **more,
    )


def wheel_a(sign: float = 1.0, **more: Any) -> PythonFmu:
    """Wheel of split A: takes the velocity of the chassis, gives the force between the two, or minus the force."""

    def force(v: Any, velocity: float) -> float:
        return float(CHASSIS_STIFFNESS * (v.zc - v.zw) + DAMPING * (velocity - v.vw))

    def step(v: Any, h: float) -> None:
        d = h / MICRO_STEPS
        for k in range(MICRO_STEPS):
            velocity = v.course("velocity", v.t + k * d)
            acceleration = (-WHEEL_STIFFNESS * (v.zw - ROAD) + force(v, velocity)) / WHEEL_MASS
            v.zc, v.zw, v.vw = v.zc + d * velocity, v.zw + d * v.vw, v.vw + d * acceleration

    return PythonFmu(
        "wheel",
        inputs={"velocity": 0.0},
        states={"zc": 0.0, "zw": 0.0, "vw": 0.0},
        outputs={"force": lambda v: sign * force(v, v.course("velocity", v.t))},
        depends={"force": ["velocity"]},
        step=step,
        attributes={"force": {"unit": NEWTON}, "velocity": {"unit": SPEED}},
        **more,
    )


SPLIT_A = ["chassis.velocity -> wheel.velocity", ("wheel.force -> chassis.force", {"factor": -1.0})]
"""Connections."""
CHASSIS, WHEEL = (
    Port("chassis", "force", "velocity", "in"),
    Port("wheel", "velocity", "force", "in"),
)
SUSPENSION = PowerBond("suspension", (CHASSIS, WHEEL), scale=750.0, tolerance=2.8e-6)


def split_a(**more: Any) -> Mapping[str, PythonFmu]:
    """Both units of split A."""
    return {"chassis": chassis_a(**more), "wheel": wheel_a(**more)}

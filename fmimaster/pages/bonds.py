"""Power bonds and power ports for `fmimaster plan` and `fmimaster info`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fmimaster.base.text import aligned, section
from fmimaster.system.description import PowerBond

if TYPE_CHECKING:
    from fmimaster.plan.plan import Plan


def planned_bonds(plan: Plan) -> list[dict[str, Any]]:
    """The power bonds of a plan, also those declared by FMUs; powers are positive from the first port to the second."""
    return [
        {
            "name": bond.name,
            "ports": [
                {
                    "component": plan.instances[port.instance].name,
                    "input": port.input,
                    "output": port.output,
                    "power": "out" if port.weight > 0 else "in",
                }
                for port in bond.ports
            ],
            "scale": bond.scale,
            "tolerance": bond.tolerance,
        }
        for bond in plan.power_bonds
    ]


def described_bonds(bonds: Iterable[PowerBond]) -> list[dict[str, Any]]:
    """The bonds of a system description, in the same form."""
    return [
        {
            "name": bond.name,
            "ports": [asdict(port) for port in bond.ports],
            "scale": bond.scale,
            "tolerance": bond.tolerance,
        }
        for bond in bonds
    ]


def bonds_page(bonds: Iterable[Mapping[str, Any]]) -> list[str]:
    """The section of the page; empty without power bonds."""
    rows = []
    for bond in bonds:
        first, second = (f"{p['component']}.{port_in_short(p)}" for p in bond["ports"])
        given = [f"scale {bond['scale']:.6g} J"] if bond["scale"] is not None else []
        given += [f"tolerance {bond['tolerance']:.6g}"] if bond["tolerance"] is not None else []
        rows.append((bond["name"], f"{first},", f"{second}{';' * bool(given)}", ", ".join(given)))
    return section("Power bonds", aligned(rows))


def port_in_short(port: Mapping[str, Any]) -> str:
    """``"force * velocity enters"``."""
    return f"{port['input']} * {port['output']} {_DIRECTIONS[port['power']]}"


_DIRECTIONS = {"in": "enters", "out": "leaves", None: "has no direction"}

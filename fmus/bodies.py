"""Systems of several bodies of one kind, as SSP: Newton's cradle, and three masses on a rope."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEMS = Path(__file__).resolve().parent / "systems"


@dataclass(frozen=True)
class Bodies:
    """A system of bodies that have the values of each other.

    Body k has the name ``stem`` with the number k, and `values` for its parameters and states. `partners` has, for each
    body, the body whose position, velocity and acceleration the inputs of each role take. A shared event has a name and
    members, each a body and the name of its event.
    """

    model: str
    stem: str
    stop_time: str
    roles: tuple[str, str]
    values: Mapping[int, Mapping[str, str]]
    partners: Mapping[int, Mapping[str, int]]
    shared: Mapping[str, Sequence[tuple[int, str]]]
    versions: Mapping[str, Sequence[str]]
    """Versions of FMI of the bodies, for each version of the system."""


def _cradle() -> Bodies:
    """Five balls that touch, the first of which is released."""
    values, partners = {}, {}
    for k in range(1, 6):
        place = float(k - 1)
        partners[k] = {s: k + n for s, n in (("left", -1), ("right", 1)) if 1 <= k + n <= 5}
        values[k] = {"x": str(place if k > 1 else -0.5), "x0": str(place), "w": repr(math.pi)}
        values[k] |= {f"{side}.m": "1" for side in partners[k]}
    return Bodies(
        "CradleBall",
        "ball",
        "4",
        ("left", "right"),
        values,
        partners,
        {f"hit{k}": ((k, "right"), (k + 1, "left")) for k in range(1, 5)},
        {
            "fmi2": ("fmi2",) * 5,
            "fmi3": ("fmi3",) * 5,
            "mixed": ("fmi2", "fmi3", "fmi3", "fmi2", "fmi2"),  # every kind of pair
        },
    )


def _rope() -> Bodies:
    """Masses of 1, 2 and 4 kg, which pull at the rope."""
    masses, speeds = ("1", "2", "4"), ("1", "2", "3")
    partners = {
        k: dict(zip(("first", "second"), (i for i in (1, 2, 3) if i != k), strict=True))
        for k in (1, 2, 3)
    }
    values = {
        k: {"m": masses[k - 1], "v": speeds[k - 1], "g": "2"}
        | {f"{role}.m": masses[i - 1] for role, i in partners[k].items()}
        for k in (1, 2, 3)
    }
    return Bodies(
        "RopeMass",
        "mass",
        "4",
        ("first", "second"),
        values,
        partners,
        {"taut": ((1, "taut"), (2, "taut"), (3, "taut"))},
        {"fmi2": ("fmi2",) * 3, "fmi3": ("fmi3",) * 3, "mixed": ("fmi2", "fmi3", "fmi2")},
    )


ALL = {"cradle": _cradle(), "rope": _rope()}


def ssd(
    name: str,
    bodies: Bodies,
    versions: Sequence[str],
    ssp_version: str,
    binding: Callable[[str, Mapping[str, str]], str],
) -> str:
    """The system description; `binding` writes the values of a component."""
    template = string.Template((SYSTEMS / "bodies.ssd").read_text(encoding="utf-8"))
    body = string.Template((SYSTEMS / "body.ssd").read_text(encoding="utf-8").rstrip())
    components = [
        body.substitute(
            name=f"{bodies.stem}{k}",
            fmu=f"{bodies.model}-{version}.fmu",
            first=bodies.roles[0],
            second=bodies.roles[1],
            values=binding(bodies.stem, bodies.values[k]),
        )
        for k, version in enumerate(versions, start=1)
    ]
    connections = [
        f'<ssd:Connection startElement="{bodies.stem}{there}" startConnector="{y}" '
        f'endElement="{bodies.stem}{here}" endConnector="{role}.{y}"/>'
        for here, roles in bodies.partners.items()
        for role, there in roles.items()
        for y in ("x", "v", "a")
    ]
    return template.substitute(
        name=name,
        ssp=ssp_version,
        stop_time=bodies.stop_time,
        components="\n".join(components),
        connections="\n      ".join(connections),
        shared="\n          ".join(_shared_events(bodies)),
    )


def _shared_events(bodies: Bodies) -> list[str]:
    """The elements SharedEvent. Where there are more than two members, each says who its partners are."""
    lines = []
    for name, members in bodies.shared.items():
        lines.append(f'<SharedEvent name="{name}">')
        for k, event in members:
            head = f'  <Member component="{bodies.stem}{k}" event="{event}"'
            if len(members) == 2:
                lines.append(f"{head}/>")
                continue
            lines.append(f"{head}>")
            lines += [
                f'    <Partner role="{role}" component="{bodies.stem}{i}"/>'
                for role, i in bodies.partners[k].items()
            ]
            lines.append("  </Member>")
        lines.append("</SharedEvent>")
    return lines

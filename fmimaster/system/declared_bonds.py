"""The power bonds of a system, declared by its description, the user and the FMUs; contradictions are refused.

The direction of a power is declared or follows from the other end, and is never guessed: the sign of the residual depends
on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from fmimaster.base.errors import DescriptionError
from fmimaster.system.declarations import PowerPort
from fmimaster.system.description import Port, PowerBond, Transformation
from fmimaster.system.model import Model


class Feed(NamedTuple):
    """The source of an input."""

    source: str
    """Name of the component."""
    output: str
    transformation: Transformation


Feeds = Mapping[tuple[str, str], Feed]
"""Component and input → its source."""


@dataclass(frozen=True, slots=True)
class DeclaredBonds:
    """The bonds of a system, and notes about incomplete declarations."""

    bonds: tuple[PowerBond, ...]
    """By the description and the user, sorted by name."""
    of_fmus: tuple[PowerBond, ...]
    """By the FMUs alone."""
    notes: tuple[str, ...]


def declared_bonds(
    described: Iterable[PowerBond],
    given: Iterable[PowerBond],
    models: Mapping[str, Model],
    feeds: Feeds,
) -> DeclaredBonds:
    """Collect the bonds from all places where they can be declared.

    The description comes first, then the user, whose scales and tolerances replace those of the description, then the
    FMUs with their terminals or annotations. Bonds with the same ports are the same bond.

    Raises
    ------
    DescriptionError
        If two places contradict each other; it names both.
    """
    found = _by_ports(described)
    for ports, bond in _by_ports(given).items():
        found[ports] = _replaced(found[ports], bond) if ports in found else bond
    of_fmus, notes = list[PowerBond](), list[str]()
    for pair in _connected_ports(models, feeds):
        known = found.get(frozenset(end.key for end in pair))
        if known is not None:
            _check_declared_by_fmus(known, pair)
        elif (assumed := _bond_of(pair, feeds)) is not None:
            of_fmus.append(assumed)
        else:
            a, b = pair
            notes.append(
                f"{a} and {b} are connected like a power bond, but neither declares whether its power enters or "
                "leaves; no power bond is assumed. Declare it in the system description or by power_bonds."
            )
    bonds = sorted(found.values(), key=lambda bond: bond.name)
    return DeclaredBonds(tuple(bonds), tuple(of_fmus), tuple(notes))


_Ports = frozenset[tuple[str, str, str]]
"""Component, input and output of both ports."""


def _ports_of(bond: PowerBond) -> _Ports:
    return frozenset((p.component, p.input, p.output) for p in bond.ports)


def _by_ports(bonds: Iterable[PowerBond]) -> dict[_Ports, PowerBond]:
    found = dict[_Ports, PowerBond]()
    for bond in bonds:
        if (known := found.setdefault(_ports_of(bond), bond)) is not bond:
            raise DescriptionError(
                f"{bond}: its ports are those of {known}. Remove one of the two."
            )
    return found


def _replaced(known: PowerBond, other: PowerBond) -> PowerBond:
    """A bond of the description with the scale and tolerance of the user."""
    if other.name != known.name:
        raise DescriptionError(f"{other}: its ports are those of {known}. Give it the same name.")
    powers = {(p.component, p.input, p.output): p.power for p in known.ports}
    for port in other.ports:
        if powers[port.component, port.input, port.output] != port.power:
            raise DescriptionError(
                f"{other}: power='{port.power}' of its port {port} contradicts {known}. Correct one of the two."
            )
    scale = known.scale if other.scale is None else other.scale
    tolerance = known.tolerance if other.tolerance is None else other.tolerance
    return replace(known, scale=scale, tolerance=tolerance)


@dataclass(frozen=True, slots=True)
class _End:
    """A port that an FMU declares, in a system."""

    component: str
    port: PowerPort

    @property
    def key(self) -> tuple[str, str, str]:
        return self.component, self.port.input, self.port.output

    @property
    def place(self) -> tuple[str, str]:
        return self.component, self.port.name

    def __str__(self) -> str:
        return f"{self.port.where} of '{self.component}'"


def _connected_ports(models: Mapping[str, Model], feeds: Feeds) -> Sequence[tuple[_End, _End]]:
    """Ports of FMUs that are connected crosswise, sorted by component and port."""
    ends = [_End(name, port) for name, model in models.items() for port in model.power_ports]
    by_output = dict[tuple[str, str], list[_End]]()  # a body has one velocity and several forces
    for end in ends:
        by_output.setdefault((end.component, end.port.output), []).append(end)

    def fed_by(end: _End) -> Sequence[_End]:
        feed = feeds.get((end.component, end.port.input))
        return () if feed is None else by_output.get((feed.source, feed.output), ())

    pairs = ((end, other) for end in ends for other in fed_by(end) if end in fed_by(other))
    found = (pair for pair in pairs if pair[0].place < pair[1].place)
    return sorted(found, key=lambda pair: (pair[0].place, pair[1].place))


def _check_declared_by_fmus(known: PowerBond, pair: tuple[_End, _End]) -> None:
    ports = {(p.component, p.input, p.output): p for p in known.ports}
    for end in pair:
        port = ports[end.key]
        if end.port.power not in (None, port.power):
            raise DescriptionError(
                f"{known}: power='{port.power}' of its port {port} contradicts {end}, "
                f"by which it is '{end.port.power}'. Correct one of the two."
            )


def _bond_of(pair: tuple[_End, _End], feeds: Feeds) -> PowerBond | None:
    """The bond of two ports of FMUs; None if neither declares its direction."""
    a, b = pair
    if a.port.power is None and b.port.power is None:
        return None
    factors = [feeds[e.component, e.port.input].transformation.factor for e in pair]
    same = factors[0] * factors[1] < 0  # one connection changes the sign
    first = a.port.power or _power(b, same=same)
    second = b.port.power or _power(a, same=same)
    name = f"{a.component}.{a.port.name}-{b.component}.{b.port.name}"
    ports = Port(*a.key, first), Port(*b.key, second)
    return PowerBond(name, ports, where=f"declared by {a} and {b}")


def _power(other: _End, *, same: bool) -> Literal["in", "out"]:
    """Direction of a port, derived from the other port."""
    return "in" if (other.port.power == "in") is same else "out"

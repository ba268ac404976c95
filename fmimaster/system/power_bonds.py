"""The power bonds of a system, declared by its description, the user and the FMUs, and resolved to ports with signs.

Contradictions and invalid bonds are refused. The direction of a power is declared or follows from the other end, and is
never guessed: the sign of the residual depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Literal, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.declarations import PowerPort
from fmimaster.system.description import Port, PowerBond
from fmimaster.system.model import Causality, DataType, Model, Transformation, Variability, Variable
from fmimaster.system.resolved import Link, ResolvedPort, ResolvedPowerBond
from fmimaster.system.units import describe, watts

_ROUNDING = 1e-9
"""Relative tolerance: rounded products of unit conversions are still treated as equal."""


class _Feed(NamedTuple):
    """The source of an input."""

    source: str
    """Name of the component."""
    output: str
    transformation: Transformation


_Feeds = Mapping[tuple[str, str], _Feed]
"""Component and input → its source."""


def resolve_power_bonds(
    described: Iterable[PowerBond],
    given: Iterable[PowerBond],
    models: Mapping[str, Model],
    links: Iterable[Link],
    absent: Collection[str] | None = None,
) -> tuple[tuple[ResolvedPowerBond, ...], tuple[str, ...]]:
    """The power bonds as ports of these models, sorted by name; and notes about invalid ones that only FMUs declare.

    Parameters
    ----------
    described, given
        Bonds of the description, and of the user.
    models
        Full component name → model; their order gives the indices.
    absent
        Of one of several structures: what exists in others only. Bonds without their connections are then left out.

    Raises
    ------
    DescriptionError
        If two places contradict each other; it names both. For names that do not exist, ports that are not connected
        crosswise, orientations that contradict the connections, products that are not a power, variables that are not
        continuous scalars, and two bonds with one name or one input.
    """
    feeds = _feeds(tuple(models), links)
    bonds, of_fmus, notes = _declared(described, given, models, feeds)
    if absent is not None:
        bonds = [bond for bond in bonds if _exists(bond, models, feeds, absent)]
    by_name, by_input = dict[str, PowerBond](), dict[tuple[str, str], PowerBond]()

    def note(bond: PowerBond) -> None:
        by_name[bond.name] = bond
        by_input.update({(port.component, port.input): bond for port in bond.ports})

    for bond in bonds:
        _check_once(bond, models, by_name, by_input)
        note(bond)
    found = [_resolved(bond, models, feeds) for bond in bonds]
    for bond in of_fmus:  # FMUs are written without knowledge of the system
        try:
            _check_once(bond, models, by_name, by_input)
            found.append(_resolved(bond, models, feeds))
            note(bond)
        except DescriptionError as error:
            notes.append(f"No power bond: {error}")
    return tuple(sorted(found, key=lambda bond: bond.name)), tuple(notes)


def _feeds(names: Sequence[str], links: Iterable[Link]) -> _Feeds:
    return {
        (names[k.target], k.input.name): _Feed(names[k.source], k.output.name, k.transformation)
        for k in links
    }


def _declared(
    described: Iterable[PowerBond],
    given: Iterable[PowerBond],
    models: Mapping[str, Model],
    feeds: _Feeds,
) -> tuple[Sequence[PowerBond], Sequence[PowerBond], list[str]]:
    """The bonds by the description and the user, those by the FMUs alone, and notes about incomplete declarations.

    The description comes first, then the user, whose scales and tolerances replace those of the description, then the
    FMUs with their terminals or annotations. Bonds with the same ports are the same bond.
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
    return sorted(found.values(), key=lambda bond: bond.name), of_fmus, notes


_Ports = frozenset[tuple[str, str, str]]
"""Component, input and output of both ports."""


def _by_ports(bonds: Iterable[PowerBond]) -> dict[_Ports, PowerBond]:
    found = dict[_Ports, PowerBond]()
    for bond in bonds:
        if (known := found.setdefault(frozenset(p.key for p in bond.ports), bond)) is not bond:
            raise DescriptionError(
                f"{bond}: its ports are those of {known}. Remove one of the two."
            )
    return found


def _replaced(known: PowerBond, other: PowerBond) -> PowerBond:
    """A bond of the description with the scale and tolerance of the user."""
    if other.name != known.name:
        raise DescriptionError(f"{other}: its ports are those of {known}. Give it the same name.")
    powers = {p.key: p.power for p in known.ports}
    for port in other.ports:
        if powers[port.key] != port.power:
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


def _connected_ports(models: Mapping[str, Model], feeds: _Feeds) -> Sequence[tuple[_End, _End]]:
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
    ports = {p.key: p for p in known.ports}
    for end in pair:
        port = ports[end.key]
        if end.port.power not in (None, port.power):
            raise DescriptionError(
                f"{known}: power='{port.power}' of its port {port} contradicts {end}, "
                f"by which it is '{end.port.power}'. Correct one of the two."
            )


def _bond_of(pair: tuple[_End, _End], feeds: _Feeds) -> PowerBond | None:
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


def _check_once(
    bond: PowerBond,
    models: Mapping[str, Model],
    by_name: Mapping[str, PowerBond],
    by_input: Mapping[tuple[str, str], PowerBond],
) -> None:
    """Raise if a bond has the name of another bond or of a component, or an input of another bond."""
    if bond.name in by_name:
        raise DescriptionError(
            f"{bond}: there is a power bond of this name already: {by_name[bond.name]}. Give each its own name."
        )
    if bond.name in models:
        raise DescriptionError(
            f"{bond} has the name of a component, whose outputs could not be distinguished from the bond's signals. "
            "Choose another name."
        )
    for port in bond.ports:
        other = by_input.get((port.component, port.input))
        if other is not None:
            known = str(other).replace("Power", "power", 1)
            raise DescriptionError(
                f"{bond}: the input of its port {port} belongs to {known} already. Each port belongs to one "
                "bond. Remove one of the two."
            )


def _resolved(bond: PowerBond, models: Mapping[str, Model], feeds: _Feeds) -> ResolvedPowerBond:
    first, second = (_ends(bond, port, models) for port in bond.ports)
    known = [_watt(bond, *pair) for pair in zip(bond.ports, (first, second), strict=True)]
    a, b = bond.ports
    between = _crosswise(bond, a, b, feeds), _crosswise(bond, b, a, feeds)
    factors = between[0].transformation.factor, between[1].transformation.factor
    watts, warnings = _watts(known, factors)
    for port, end in zip(bond.ports, (first, second), strict=True):
        warnings += _discrete(bond, port, end)
    weights = [p.sign * w for p, w in zip(bond.ports, watts, strict=True)]
    crosswise = [w * factor for w, factor in zip(weights, factors, strict=True)]
    if not isclose(crosswise[0], -crosswise[1], rel_tol=_ROUNDING):
        raise DescriptionError(
            f"{bond}: the powers of its ports contradict the connections. By {_in_words(bond.ports[0])} and "
            f"{_in_words(bond.ports[1])}, with the connections {_connection(bond, 1, 0, between[0])} and "
            f"{_connection(bond, 0, 1, between[1])}, the power that leaves one component would not be equal to the "
            "power that enters the other one. With plain connections one port has power 'in' and the other one "
            "'out'; if one of the "
            "connections has the factor -1, both have the same. Correct a port or a connection."
        )
    ports = tuple(ResolvedPort(*end, w) for end, w in zip((first, second), weights, strict=True))
    return ResolvedPowerBond(
        bond.name, (ports[0], ports[1]), crosswise[0], bond.scale, bond.tolerance, tuple(warnings)
    )


_Ends = tuple[int, Variable, Variable]
"""Component, input and output of a port."""


def _ends(bond: PowerBond, port: Port, models: Mapping[str, Model]) -> _Ends:
    if port.component not in models:
        raise DescriptionError(
            f"{bond}: there is no component '{port.component}'.{did_you_mean(port.component, models)}"
        )
    model, found = models[port.component], list[Variable]()
    for name, causality in ((port.input, Causality.INPUT), (port.output, Causality.OUTPUT)):
        variable = model.variable(name)
        if variable is None or variable.causality is not causality:
            names = [v.name for v in model.with_causality(causality)]
            raise DescriptionError(
                f"{bond}: '{port.component}' has no {causality.value} '{name}'.{did_you_mean(name, names)}"
            )
        if problem := _problem(variable, model):
            raise DescriptionError(
                f"{bond}: '{port.component}.{name}' is {problem}, expected a continuous scalar of type Float64. "
                "Correct the port, or remove the bond."
            )
        found.append(variable)
    return list(models).index(port.component), found[0], found[1]


def _problem(variable: Variable, model: Model) -> str:
    """Why a variable cannot belong to a port; empty if it can."""
    if variable.shape:
        return "an array"
    if variable.type is not DataType.FLOAT64:
        return f"of type {variable.type.value}"
    # some FMUs, for example those of libcosim's quarter truck, declare all of their variables discrete
    is_discrete = variable.variability is Variability.DISCRETE
    may_be_continuous = is_discrete and not model.capabilities.has_event_mode
    return "" if variable.is_continuous or may_be_continuous else "not continuous"


def _discrete(bond: PowerBond, port: Port, end: _Ends) -> list[str]:
    """A warning for variables that an FMU declares discrete."""
    names = [f"'{port.component}.{v.name}'" for v in end[1:] if not v.is_continuous]
    if not names:
        return []
    are = "is" if len(names) == 1 else "are"
    return [
        f"{bond}: {' and '.join(names)} {are} declared discrete, and treated as continuous, because the product must "
        "be a power."
    ]


def _exists(
    bond: PowerBond, models: Mapping[str, Model], feeds: _Feeds, absent: Collection[str]
) -> bool:
    """Whether a structure has the components of a bond, and its connections."""
    for port in bond.ports:
        if port.component not in absent:
            _ends(bond, port, models)
    a, b = bond.ports
    found = [feeds.get((port.component, port.input)) for port in (b, a)]
    return [f and f[:2] for f in found] == [(p.component, p.output) for p in (a, b)]


def _crosswise(bond: PowerBond, target: Port, source: Port, feeds: _Feeds) -> _Feed:
    """The link from the output of one port to the input of the other one."""
    feed = feeds.get((target.component, target.input))
    a, b = bond.ports
    if feed is None or (feed.source, feed.output) != (source.component, source.output):
        raise DescriptionError(
            f"{bond}: its ports {a} and {b} are not connected crosswise: no connection leads from "
            f"'{source.component}.{source.output}' to '{target.component}.{target.input}'. Add it, or correct the port."
        )
    if feed.transformation.offset:
        raise DescriptionError(
            f"{bond}: the connection from '{source.output}' to '{target.input}' between its ports {a} and {b} adds "
            f"{feed.transformation.offset:g}, so their powers cannot agree. Remove the offset or the bond."
        )
    return feed


def _watts(
    found: Sequence[tuple[float | None, str]], factors: tuple[float, float]
) -> tuple[list[float], list[str]]:
    """The products of the ports, completed from the other port and the factors of the connections where units are
    missing; and warnings.
    """
    watts, warnings = [watt for watt, _ in found], [unknown for _, unknown in found if unknown]
    if watts == [None, None]:
        return [1.0, 1.0], [f"{unknown}, and W is assumed." for unknown in warnings]
    for k, watt in enumerate(watts):
        known = watts[1 - k]
        if watt is None and known is not None and factors[k]:
            watts[k] = known * abs(factors[1 - k] / factors[k])
    return [watt or 1.0 for watt in watts], [
        f"{unknown}, and follows from the other port." for unknown in warnings
    ]


def _watt(bond: PowerBond, port: Port, end: _Ends) -> tuple[float | None, str]:
    """Product of input and output in W if both are 1, or None if it is not known; and the beginning of a warning."""
    units = [v.unit for v in end[1:]]
    known = [u for u in units if u is not None and u.exponents is not None]
    product = " and ".join(
        f"'{v.name}' in {describe(v.unit)}" if v.unit else f"'{v.name}' without unit"
        for v in end[1:]
    )
    if len(known) < len(units):
        return None, f"{bond}: the product of the units of port {port} is not known ({product})"
    watt = watts(*known)
    if watt is None:
        raise DescriptionError(
            f"{bond}: the product of the units of port {port} is not a power ({product}), expected units without offset "
            "whose product is W. Correct the units or the port."
        )
    return watt, ""


def _in_words(port: Port) -> str:
    return f"power='{port.power}' of port {port}"


def _connection(bond: PowerBond, source: int, target: int, feed: _Feed) -> str:
    factor, (a, b) = feed.transformation.factor, (bond.ports[source], bond.ports[target])
    times = "" if factor == 1 else f" (factor {factor:g})"
    return f"'{a.component}.{a.output} -> {b.component}.{b.input}'{times}"

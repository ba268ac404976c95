"""The units of a system, the connections between them, and the weight of a connection: the cost of a stale input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import isfinite
from numbers import Real

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.system.model import Model, Variability, Variable
from fmimaster.system.resolved import Link


@dataclass(frozen=True, slots=True)
class UnitConnection:
    """A connection between two units; in Gauss-Seidel one that leads back in the sequence is stale."""

    source: str
    """Name of the unit of the output."""
    output: str
    target: str
    """Name of the unit of the input."""
    input: str
    direct: bool = False
    """Whether an output of the target that feeds another unit depends directly on the input (feed-through)."""
    switches: bool = False
    """Whether all outputs of the target that feed another unit are discrete: a stale input makes their changes late."""
    held: bool = False
    """Whether the output is discrete: its old value is right until it changes."""

    @property
    def target_input(self) -> str:
        """``"unit.input"``, which names the connection: an input has one source."""
        return f"{self.target}.{self.input}"

    def __str__(self) -> str:
        return f"{self.source}.{self.output} -> {self.target_input}"


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a system and their connections, to be put in order."""

    names: tuple[str, ...]
    """In the order of the system description."""
    connections: tuple[UnitConnection, ...]
    together: tuple[tuple[str, ...], ...] = ()
    """Groups of units that must follow each other directly, because they are solved together. They do not overlap."""


def units_of(
    names: Sequence[str],
    models: Sequence[Model],
    links: Iterable[Link],
    together: Iterable[Iterable[int]] = (),
) -> Units:
    """The units of a resolved system.

    Parameters
    ----------
    together
        Groups of indices of units that must follow each other directly.
    """
    links = list(links)
    feeding: list[dict[str, Variable]] = [{} for _ in models]
    for link in links:
        feeding[link.source][link.output.name] = link.output
    direct = [
        frozenset[str]().union(*(m.dependencies.get(output, ()) for output in feeding[i]))
        for i, m in enumerate(models)
    ]
    switches = [
        bool(outputs) and all(v.variability is not Variability.CONTINUOUS for v in outputs.values())
        for outputs in feeding
    ]
    return Units(
        tuple(names),
        tuple(
            UnitConnection(
                names[k.source],
                k.output.name,
                names[k.target],
                k.input.name,
                k.input.name in direct[k.target],
                switches[k.target],
                k.output.variability is not Variability.CONTINUOUS,
            )
            for k in links
        ),
        tuple(tuple(names[i] for i in group) for group in together),
    )


NOT_DIRECT = 0.01
"""Weight of an input without feed-through: not 0, so that of sequences that are else equal the one with fewer stale inputs
is chosen (sequence.md, 4.1)."""


SWITCHES = 10.0
"""Weight of an input of a controller, all of whose outputs are discrete: more than that of an input with feed-through,
because its error is a whole step late, however accurate other inputs are. So a controller comes after its plants."""


class Weights(TypedArguments, ABC):
    """Gives each connection a weight: not negative, finite, without unit; only ratios count."""

    @abstractmethod
    def of(self, connections: Iterable[UnitConnection]) -> list[float]:
        """The weights, in the order of the connections."""


@dataclass(frozen=True, slots=True)
class Count(Weights):
    """Every connection weighs 1: the cost is the number of stale inputs.

    Source: Holzinger and Benedikt (2019), equation 4.
    """

    def of(self, connections: Iterable[UnitConnection]) -> list[float]:
        """Ones."""
        return [1.0 for _ in connections]


@dataclass(frozen=True, slots=True)
class FeedThrough(Weights):
    """A connection weighs 1 if its target passes changes of the input on at once, else less.

    An error of an input with feed-through appears at an output in the same step; otherwise it is integrated first. Only
    outputs that feed another unit count. An input of a unit all of whose outputs are discrete weighs 10: a thermostat with
    a stale temperature switches one step late. Any other input from a discrete output weighs less than 1 also with
    feed-through: its old value is right until it changes.

    Parameters
    ----------
    otherwise : float
        Weight of the connections without feed-through. With 0 it is equation 13 of the source.

    Source: Holzinger and Benedikt (2019), section 3.1.
    """

    otherwise: float = NOT_DIRECT

    def __post_init__(self) -> None:
        _check("FeedThrough, otherwise", self.otherwise)

    def of(self, connections: Iterable[UnitConnection]) -> list[float]:
        """10 or 1, or the weight of connections without feed-through."""
        return [self._weight(c) for c in connections]

    def _weight(self, connection: UnitConnection) -> float:
        if connection.switches:
            return SWITCHES
        return 1.0 if connection.direct and not connection.held else self.otherwise


@dataclass(frozen=True)
class GivenWeights(Weights):
    """Weights that are given by the name of the input, ``"component.input"``; the others follow a rule.

    Parameters
    ----------
    given : name of the input → weight
    otherwise : Weights
        For the connections that are not named.
    """

    given: Mapping[str, float]
    otherwise: Weights = field(default_factory=FeedThrough)

    def __post_init__(self) -> None:
        for name, weight in self.given.items():
            _check(f"Weight of the connection to '{name}'", weight)

    def of(self, connections: Iterable[UnitConnection]) -> list[float]:
        """The given weight, else the weight by the rule.

        Raises
        ------
        OptionError
            If a name is that of no connected input.
        """
        connections = list(connections)
        known = {c.target_input for c in connections}
        for name in self.given:
            if name not in known:
                raise OptionError(
                    f"Weight of the connection to '{name}': no connection feeds an input of that name."
                    f"{did_you_mean(name, sorted(known))}"
                )
        return [
            float(self.given.get(c.target_input, weight))
            for c, weight in zip(connections, self.otherwise.of(connections), strict=True)
        ]


def _check(what: str, weight: float) -> None:
    if not (isinstance(weight, Real) and isfinite(weight) and weight >= 0):
        raise OptionError(
            f"{what}: {weight!r}, expected a finite number that is not negative. Give a larger number to an input "
            "that must not be stale, and 0 to one that may."
        )

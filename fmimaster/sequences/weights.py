"""Weights of connections: the cost of a stale input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from numbers import Real

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.sequences.units import UnitConnection

NOT_DIRECT = 0.01
"""Weight of an input without feed-through: not 0, so that of sequences that are else equal the one with fewer stale inputs
is chosen (sequence.md, 4.1)."""


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
    outputs that feed another unit count. A unit all of whose outputs are discrete passes changes on at once, too: a
    thermostat with a stale temperature switches one step late.

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
        """1, or the weight of connections without feed-through."""
        return [1.0 if c.direct or c.switches else self.otherwise for c in connections]


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

"""Which values the parameters of a sweep have in its runs: samples of ranges, grids, and tables that are given."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import isfinite, prod
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import count, named
from fmimaster.base.typed_arguments import TypedArguments

log = logging.getLogger("fmimaster")

MOST_RUNS = 10_000_000
"""Runs of a sweep: its design is in memory."""
_MOST_FOR_SOBOL = 21_201
"""Parameters for which SciPy has direction numbers."""

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""Name of a parameter → its value in each run."""


@dataclass(frozen=True)
class Range(TypedArguments):
    """From a lowest to a highest value, both included.

    Parameters
    ----------
    low, high : float
        In the unit of the start value; of an integer, whole numbers.
    count : int, optional
        Values in a grid, at equal distances.
    """

    low: float
    high: float
    count: int | None = None

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise OptionError(f"The range {self} is empty: expected LOW < HIGH, both finite.")
        if self.count is not None and self.count < 2:
            raise OptionError(
                f"The range {self} has {count(self.count, 'value')}, expected 2 or more."
            )

    def __str__(self) -> str:
        ends = f"{self.low:.12g}:{self.high:.12g}"
        return ends if self.count is None else f"{ends}:{self.count}"

    def at(self, places: NDArray[np.float64], *, is_whole: bool) -> Sequence[Any]:
        """Values at places from 0 to 1; each whole number has an equal share of them.

        Parameters
        ----------
        places : shape (n,)
        """
        if not is_whole:
            return ((1.0 - places) * self.low + places * self.high).tolist()  # type: ignore[no-any-return]
        low, high = self.ends
        found = low + np.floor(places * (high - low + 1)).astype(np.int64)
        return np.minimum(found, high).tolist()  # type: ignore[no-any-return]

    def levels(self, usual: int | None, name: str, *, is_whole: bool) -> Sequence[Any]:
        """The values of a grid."""
        n = usual if self.count is None else self.count
        if n is None:
            raise OptionError(
                f"The grid needs the number of values of '{name}': {name}={self.low:.12g}:{self.high:.12g}:COUNT, or the "
                "same number for all parameters (n)."
            )
        if not is_whole:
            return np.linspace(self.low, self.high, n).tolist()  # type: ignore[no-any-return]
        low, high = self.ends
        if (high - low) % (n - 1):
            raise OptionError(
                f"'{name}' has whole numbers only: {low} to {high} cannot be {n} values at equal distances. Choose "
                f"another number, or list the values: {name}={low},...,{high}."
            )
        return list(range(low, high + 1, (high - low) // (n - 1)))

    @property
    def ends(self) -> tuple[int, int]:
        """Both ends as whole numbers."""
        return int(self.low), int(self.high)


@dataclass(frozen=True)
class Choices(TypedArguments):
    """Single values, such as items of an enumeration or both Booleans; in a sample each has an equal share.

    Parameters
    ----------
    values
        As start values; texts are read as those of the command line.
    """

    values: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if len(self.values) < 2:
            raise OptionError(
                f"The choices {self.values} are {count(len(self.values), 'value')}: expected 2 or more."
            )

    def __str__(self) -> str:
        return ",".join(map(str, self.values))

    def at(self, places: NDArray[np.float64], *, is_whole: bool) -> Sequence[Any]:
        """Values at places from 0 to 1."""
        last = len(self.values) - 1
        return [self.values[min(k, last)] for k in (places * (last + 1)).astype(int).tolist()]

    def levels(self, usual: int | None, name: str, *, is_whole: bool) -> Sequence[Any]:
        """The values of a grid."""
        return self.values


Parameters: TypeAlias = Mapping[str, "Range | Choices | tuple[float, float]"]
"""Name of a start value → its range, as ``Range(low, high)`` or ``(low, high)``, or its choices."""


class Design(ABC):
    """The runs of a sweep, by the values of the parameters in them."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The parameters, which are start values as of :class:`fmimaster.Simulation`."""

    @abstractmethod
    def columns(self, whole: Iterable[str]) -> Columns:
        """The values of all runs.

        Parameters
        ----------
        whole
            Names of the parameters that have whole numbers only.
        """

    @property
    def ranges(self) -> Mapping[str, Range | Choices]:
        """Name of a parameter → what its values are drawn from; empty for values that are given."""
        return {}

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What it was made of, as values of JSON."""


@dataclass(frozen=True)
class _OfRanges(TypedArguments, Design):
    """A design that is computed from ranges and choices."""

    parameters: Parameters

    def __post_init__(self) -> None:
        given = {
            name: Range(*one) if isinstance(one, tuple) else one
            for name, one in self.parameters.items()
        }
        object.__setattr__(self, "parameters", MappingProxyType(given))
        if not given:
            raise OptionError("The design is empty: it has no parameter. Give one or more.")

    def __reduce__(self) -> tuple[Any, ...]:
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _made, (type(self), given | {"parameters": dict(self.parameters)})

    @property
    def names(self) -> Sequence[str]:
        return [*self.parameters]

    @property
    def ranges(self) -> Mapping[str, Range | Choices]:
        return self.parameters  # type: ignore[return-value]  # tuples were replaced

    def facts(self) -> dict[str, Any]:
        return {
            "method": type(self).__name__,
            "parameters": {name: str(one) for name, one in self.parameters.items()},
        }


def _made(kind: type[Any], given: dict[str, Any]) -> Any:
    return kind(**given)


@dataclass(frozen=True)
class _Sample(_OfRanges):
    """Points in the unit cube, stretched to the ranges."""

    n: int = field(kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_runs(self.n)
        if self.seed < 0:
            raise OptionError(f"The seed is {self.seed}, expected 0 or more.")
        if counted := [name for name, one in self.ranges.items() if getattr(one, "count", None)]:
            raise OptionError(
                f"A number of values ({named(counted)}) is for a grid. Leave it out, or make a FullGrid."
            )

    def columns(self, whole: Iterable[str]) -> Columns:
        places = self._places(len(self.parameters))
        return {
            name: one.at(places[:, k], is_whole=name in whole)
            for k, (name, one) in enumerate(self.ranges.items())
        }

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"n": self.n, "seed": self.seed}

    def _seeded(self) -> dict[str, Any]:
        """For SciPy: before 1.15 it does not know ``rng``."""
        return {"seed": np.random.default_rng(self.seed)}

    @abstractmethod
    def _places(self, parameters: int) -> NDArray[np.float64]:
        """Shape (n, parameters), from 0 to 1."""


@dataclass(frozen=True)
class Sobol(_Sample):
    """A scrambled Sobol' sequence: fills the ranges evenly, also in each pair of parameters.

    Parameters
    ----------
    parameters : name → Range, (low, high) or Choices
    n : int
        Runs. The sequence is balanced after a power of two; with another number there is a warning.
    seed : int
        Of the scrambling. The same seed gives the same runs.

    Source: Sobol' (1967), scrambled by Matousek (1998), as in ``scipy.stats.qmc``.
    """

    def _places(self, parameters: int) -> NDArray[np.float64]:
        from scipy.stats import qmc  # slow to import

        if parameters > _MOST_FOR_SOBOL:
            raise OptionError(
                f"There are {parameters} parameters; Sobol' sequences are known up to {_MOST_FOR_SOBOL}. Make a "
                "LatinHypercube."
            )
        power = (self.n - 1).bit_length()
        if self.n != 1 << power:
            log.warning(
                "%d runs are no power of two, so the Sobol' sequence is not balanced. Use %s for even samples.",
                self.n,
                f"{1 << power - 1} or {1 << power}",
            )
        sequence = qmc.Sobol(parameters, scramble=True, **self._seeded())
        found: NDArray[np.float64] = sequence.random_base2(power)[: self.n]
        return found


@dataclass(frozen=True)
class LatinHypercube(_Sample):
    """A Latin hypercube: with n runs, each parameter has one value in each n-th of its range.

    Parameters
    ----------
    parameters : name → Range, (low, high) or Choices
    n : int
        Runs.
    seed : int
        The same seed gives the same runs.

    Source: McKay, Beckman and Conover (1979), as in ``scipy.stats.qmc``.
    """

    def _places(self, parameters: int) -> NDArray[np.float64]:
        from scipy.stats import qmc  # slow to import

        cube = qmc.LatinHypercube(parameters, **self._seeded())
        found: NDArray[np.float64] = cube.random(self.n)
        return found


@dataclass(frozen=True)
class FullGrid(_OfRanges):
    """Each value of each parameter with each of the others; the last parameter changes fastest.

    Parameters
    ----------
    parameters : name → Range, (low, high) or Choices
    n : int, optional
        Values of each range that has no number of its own.
    """

    n: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n is not None and self.n < 2:
            raise OptionError(f"A grid has {self.n} values of each parameter, expected 2 or more.")

    def columns(self, whole: Iterable[str]) -> Columns:
        levels = [
            one.levels(self.n, name, is_whole=name in whole) for name, one in self.ranges.items()
        ]
        runs = prod(map(len, levels))
        check_runs(runs)
        found: dict[str, Sequence[Any]] = {}
        repeated = runs
        for name, values in zip(self.names, levels, strict=True):
            repeated //= len(values)
            block = [value for value in values for _ in range(repeated)]
            found[name] = block * (runs // len(block))
        return found

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"n": self.n}


def check_runs(runs: int) -> None:
    """Refuse none, and too many."""
    if not 1 <= runs <= MOST_RUNS:
        raise OptionError(f"The design has {runs:,} runs, expected 1 to {MOST_RUNS:,}.")

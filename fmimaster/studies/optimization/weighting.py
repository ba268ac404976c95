"""Weights of inputs from one run of the system and runs of its components alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable

from fmimaster.studies.optimization.alone import Alone

Input = tuple[str, str]
"""Component and input."""


class Weighting(ABC):
    """Base of all weightings: the cost of a stale input."""

    __slots__ = ()

    def check(self, components: Collection[str]) -> None:
        """Refuse settings that do not fit to these components; by default there are none.

        Raises
        ------
        OptionError
        """
        del components

    @abstractmethod
    def weights(self, component: Alone) -> Iterable[tuple[Input, float]]:
        """The weight of each connected input of a component, not negative."""

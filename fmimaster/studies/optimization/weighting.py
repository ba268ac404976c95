"""Weights of inputs from one run of the system and runs of its components alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fmimaster.studies.optimization.alone import Alone
from fmimaster.studies.optimization.trial import rms

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


@dataclass(frozen=True, slots=True)
class Propagated(Weighting):
    """Weigh each input by the effect of its extrapolation error on the outputs of its component alone.

    ``c_i = max over the outputs o of rms(response_o) / rms(Y_o)``. The response is the difference between two runs of the
    component with the inputs of the system's run: one with the input held over each step, one with it interpolated.

    Source: fmimaster, docs/trigger-sequence.md ("propagated weights").
    """

    def weights(self, component: Alone) -> Iterable[tuple[Input, float]]:
        """The weight of each input of a component."""
        scale = rms(component.recorded_outputs())
        counted = scale > 0
        for name in sorted(component.links):
            response = rms(component.run(stale=name) - component.fresh)[counted] / scale[counted]
            yield (component.name, name), float(max(response, default=0.0))

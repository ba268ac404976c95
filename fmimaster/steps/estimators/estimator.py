"""The base class of error estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook


class Measured(NamedTuple):
    """The error of a step."""

    error: float
    """1 is the tolerance."""
    name: str = ""
    """Name of the estimator, with the bond or output that contributed most: ``"energy_error of suspension"``."""


class Estimator(TypedArguments, ABC):
    """Base of all error estimators: a signal of the run, written in each step before it is accepted or undone.

    Attributes
    ----------
    name : str
        Name of the signal: the error of the last step, where 1 is the tolerance. A second signal ``"<name>.worst"``, which
        is not recorded, is the index in :meth:`sources` of the bond or output that contributed most.
    """

    __slots__ = ()

    name: ClassVar[str]

    @abstractmethod
    def order(self, degree: int) -> int:
        """The power of the step size with which the error grows, if inputs are extrapolated by this degree."""

    def signals(self) -> tuple[Signal, ...]:
        """The signals that its hook writes; none if another part of the run writes them."""
        return Signal(self.name), Signal(self.worst, is_recorded=False)

    @property
    def worst(self) -> str:
        """Name of the signal with the index of the bond or output that contributed most."""
        return f"{self.name}.worst"

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """Names of the bonds or outputs from which the error is computed, in the order of their indices."""
        del plan
        return ("",)

    def names(self, plan: Plan) -> tuple[str, ...]:
        """Names of the error, as :class:`Measured` has them, in the same order."""
        return tuple(f"{self.name} of {s}" if s else self.name for s in self.sources(plan))

    def history(self, degree: int) -> int:
        """How many accepted points its hook needs in the value store, if inputs are extrapolated by this degree."""
        del degree
        return 0

    def hook(self, plan: Plan, degree: int) -> Hook | None:
        """The hook that writes the signals at the end of a step; None if another part of the run writes them."""
        del plan, degree
        return None

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """Notes on what the error does not include, and why."""
        del plan
        return ()

    def refuse(self, plan: Plan) -> None:
        """Raise if the system has nothing that the estimator can measure.

        Raises
        ------
        OptionError
            If the bonds or outputs that it measures are missing.
        """
        del plan

"""The interface of all simulation units: one class, in the terms of FMI 3.0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import CallLog
from fmimaster.fmu.intermediate import IntermediateOutputs
from fmimaster.fmu.kernel_entry import E, KernelEntries, PartitionCallbacks, UpdateCallback
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType, Model

Transfer = Callable[[], None]
"""Transfers the values of one segment between the FMU and its array."""

Signal = Callable[[float, int], NDArray[np.float64]]
"""Time in s and order k → k-th time derivatives of inputs (k = 0: values), shape (n,)."""


@dataclass(frozen=True, slots=True)
class InstanceOptions:
    """Use of an instance, which must be known when it is made."""

    logging_on: bool = False
    """Whether it logs all its messages."""
    polynomial_inputs: bool = False
    """Whether its inputs are given as polynomials."""
    event_mode: bool = False
    """Whether Event Mode is used; FMI 3.0 only."""
    early_return: bool = False
    """Whether it may end a step at an event; FMI 3.0 only."""
    update_callback: UpdateCallback | None = None
    """Its callback in Intermediate Update Mode; None: a method in Python."""
    partition_callbacks: PartitionCallbacks | None = None
    """Its callbacks in Scheduled Execution; None: methods in Python."""
    intermediate_outputs: IntermediateOutputs | None = None
    """Outputs that are read in Intermediate Update Mode."""
    solver: Integrator | None = None
    """The integrator of a Model Exchange FMU; None for the default."""
    call_log: CallLog | None = None
    """The log of its FMI calls, which are then made in Python; None for no log."""


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """The answer of ``DoStep`` if the step was not simply completed."""

    last_successful_time: float
    discarded: bool = False
    terminate: bool = False
    early: bool = False
    """Whether it ended the step before its end, at ``last_successful_time``."""
    event: bool = False
    """Whether it requests an event."""
    messages: tuple[str, ...] = ()
    """The last messages that the unit has logged, oldest first."""


@dataclass(frozen=True, slots=True)
class UpdateAnswer:
    """The answer of ``UpdateDiscreteStates``."""

    wants_update: bool = False
    terminate: bool = False
    next_event_time: float = inf
    """In s."""


class Instance(ABC):
    """A simulation unit that can be stepped.

    A subclass defines :meth:`getter` and :meth:`do_step`, and all methods that its model requires: setters for its
    inputs, save and restore for canGetAndSetFMUState, and so on. Other methods raise
    :class:`fmimaster.base.errors.CallError`, or do nothing if that is permitted.

    Every method raises CallError if the unit returns Error or Fatal, or Discard where that is not permitted. Arrays
    that are passed to it are borrowed: they must keep their addresses as long as the instance exists.

    Parameters
    ----------
    name : str
        Full name of the component in its system.
    model : Model
    """

    def __init__(self, name: str, model: Model) -> None:
        self.name = name
        self.model = model
        self.clock: Callable[[], float | None] = lambda: None
        """Present time of the instance in s, for messages; an executor sets it."""
        self.kept_from: Callable[[], float] = lambda: inf
        """Time in s of the earliest state that may still be restored; inf for none. An executor sets it."""
        self.mark_dropped: Callable[[], None] = lambda: None
        """Called in each step in which the instance does not take part any more; a run sets it."""

    @property
    def is_dropped(self) -> bool:
        """Whether it no longer takes part in the run, because its process was lost."""
        return False

    def kernel_entry(self, kernel: KernelEntries[E]) -> E:
        """What the kernel calls it by: its methods, unless a subclass chooses another way."""
        return kernel.in_python()

    @property
    def calling(self) -> str:
        """The function that it calls now, without prefix, for a thread that asks; empty if it does not know."""
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What has happened to it in this run, without an effect on the results."""
        return ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What has happened to it in this run, with an effect on the results."""
        return ()

    # Values

    @abstractmethod
    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables into ``values``, shape (total number of elements,)."""

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets these variables from ``values``, shape (total number of elements,)."""
        raise self._lacks(f"Set{kind.value}", "variables that can be set")

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """A function that computes directional derivatives: the partial derivatives of unknowns by knowns times the
        seed.

        Only for a model whose capabilities declare directional derivatives.

        Parameters
        ----------
        unknowns, knowns
            Value references of Float64 variables.
        seed, sensitivity : shape (number of elements of the knowns,), of the unknowns
        """
        raise self._lacks("GetDirectionalDerivative", "directional derivatives")

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function (time, signal) that sets these inputs as polynomials, from ``time`` over the next step.

        Only for a model whose capabilities declare that it accepts polynomials.
        """
        raise self._lacks("polynomials of inputs", "inputs that are polynomials")

    # Intervals of clocks

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that asks for the intervals of time-based clocks, in this order: ``GetInterval``.

        An interval is CHANGED in one answer only; the next answer is UNCHANGED.
        """
        raise self._lacks("GetInterval", "time-based clocks")

    def shift(self, clock: int) -> Fraction:
        """From the start to the first tick of a periodic clock, in s: ``GetShift``."""
        raise self._lacks("GetShift", "periodic clocks")

    def set_interval(self, clock: int, interval: Fraction) -> None:
        """Give the interval in s of a clock whose interval the importer decides: ``SetInterval``."""
        raise self._lacks("SetInterval", "clocks whose intervals can be set")

    def set_shift(self, clock: int, shift: Fraction) -> None:
        """Give the shift in s of such a clock: ``SetShift``."""
        raise self._lacks("SetShift", "clocks whose shifts can be set")

    # Modes

    def enter_configuration_mode(self) -> None:
        """Enter Configuration Mode, to set structural parameters."""
        raise self._lacks("EnterConfigurationMode", "Configuration Mode")

    def exit_configuration_mode(self) -> None:
        """Leave Configuration Mode, back to Instantiated."""
        raise self._lacks("ExitConfigurationMode", "Configuration Mode")

    def enter_initialization_mode(  # noqa: B027 (may do nothing)
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """Enter Initialization Mode at the start time; times in s."""

    def enter_event_mode(self) -> None:
        """Enter Event Mode from Initialization Mode or Step Mode."""
        raise self._lacks("EnterEventMode", "Event Mode")

    def enter_step_mode(self) -> None:  # noqa: B027 (may do nothing)
        """Enter Step Mode from Initialization Mode or Event Mode."""

    def update_discrete_states(self) -> UpdateAnswer:
        """``UpdateDiscreteStates``, in Event Mode."""
        raise self._lacks("UpdateDiscreteStates", "Event Mode")

    # Time

    @abstractmethod
    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Step from ``time`` by ``size``, both in s; returns None if the step was completed."""

    def save(self, place: int) -> None:
        """Save the FMU state in a place; it replaces the one saved there."""
        raise self._lacks("GetFMUState", "a state that can be saved")

    def restore(self, place: int) -> None:
        """Restore the FMU state from a place."""
        raise self._lacks("SetFMUState", "a state that can be restored")

    def serialized(self) -> bytes:
        """The present FMU state as bytes, for another instance of the same FMU."""
        raise self._lacks("SerializeFMUState", "a state that can be serialized")

    def deserialize(self, state: bytes) -> None:
        """Restore a state that :meth:`serialized` has returned."""
        raise self._lacks("DeserializeFMUState", "a state that can be serialized")

    # The end

    def terminate(self) -> None:  # noqa: B027 (may do nothing)
        """Terminate, after the last step."""

    can_reset: ClassVar[bool] = False
    """Whether :meth:`reset` also resets what this class remembers, so that another run may follow."""

    def reset(self) -> None:
        """``Reset``: back to the state right after the instantiation."""
        raise self._lacks("Reset", "a state that can be reset")

    def free(self) -> None:  # noqa: B027 (may do nothing)
        """Release all resources; the instance must not be used any more. Never raises."""

    def abandon(self) -> None:  # noqa: B027 (may do nothing)
        """End the process of the unit, if it has one, although a call has not returned; called in any thread."""

    def _lacks(self, function: str, what: str) -> CallError:
        return CallError(
            f"{function} was called for '{self.name}', which does not have {what}.",
            instance=self.name,
            function=function,
            status="missing",
        )

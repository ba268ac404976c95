"""How the kernel calls an instance: the ways that there are, and what an instance gives the kernel for each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from fmimaster.base.data import dataclass

if TYPE_CHECKING:  # few runs need all of them
    from fmimaster.plan.layout import Group
    from fmimaster.system.model import DataType

E = TypeVar("E", covariant=True)


class KernelEntries(Protocol[E]):
    """Makes the entry through which the kernel calls one instance, which chooses one of these ways, and gives itself where
    the kernel works on its data."""

    @abstractmethod
    def in_python(self) -> E:
        """By the methods of the instance."""

    @abstractmethod
    def of_fmu(self, binding: Binding) -> E:
        """By the functions of a Co-Simulation FMU."""

    @abstractmethod
    def of_model_exchange(self, binding: Binding, instance: Any) -> E:
        """By the functions of a Model Exchange FMU, with an integrator of the kernel."""

    @abstractmethod
    def of_scheduled(self, binding: Binding, instance: Any) -> E:
        """By the functions of a Scheduled Execution FMU, whose partitions are activated in C."""

    @abstractmethod
    def of_element(self, instance: Any) -> E:
        """By the twin of an element of semantic adaptation."""

    @abstractmethod
    def of_other_process(self, requests: Requests) -> E:
        """By requests to another process."""


@dataclass(frozen=True, slots=True, eq=False)
class UpdateCallback:
    """The callback of an FMU in Intermediate Update Mode, if it is not in Python.

    Parameters
    ----------
    function, environment : int
        Address of the function, and its first argument.
    kept : object
        The owner of both.
    read : function
        Takes a function that reads outputs there: start of the step in s, NaN after the first update of a step; time in s;
        whether the FMU can return early → the time at which it is requested to do so, or NaN.
    """

    function: int
    environment: int
    kept: Any
    read: Callable[[Callable[[float, float, bool], float]], None]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionCallbacks:
    """The callbacks of a Scheduled Execution FMU, if they are not in Python.

    Parameters
    ----------
    clock_update, nothing, environment : int
        Addresses: of the function for ``ClockUpdate``, of one for the locks of preemption, and of their environment.
    kept : object
        The owner of these.
    otherwise : function
        Takes the address of the function for ``ClockUpdate`` in partitions that are activated in Python.
    """

    clock_update: int
    nothing: int
    environment: int
    kept: Any
    otherwise: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Binding:
    """How the kernel calls the functions of an FMU in this process.

    Parameters
    ----------
    prefix : str
        Of the names of its functions: ``"fmi2"`` or ``"fmi3"``.
    library, component : int
        Handle of the library in this process, and address of the instance in it.
    address : function name without prefix → address
        0 if the library lacks the function.
    lend_places : function
        Takes a function that returns the addresses of the FMU states that the kernel has saved; they are freed with the
        instance.
    raise_failure : function
        Raises the error for a call that failed: name of the function without prefix, what it returned, and the length in
        s of the step if it was a step.
    messages : function
        The last messages that the instance has logged, oldest first.
    intermediate : tuple of int
        Value references of the inputs that are set in Intermediate Update Mode.
    update_callback : UpdateCallback or None
        The function that sets them; None for a method in Python.
    """

    prefix: str
    library: int
    component: int
    address: Callable[[str], int]
    lend_places: Callable[[Callable[[], list[int]]], None]
    raise_failure: Callable[[str, int, float], None]
    messages: Callable[[], tuple[str, ...]]
    intermediate: tuple[int, ...] = ()
    update_callback: UpdateCallback | None = None


class Requests(Protocol):
    """An FMU in another process, as far as the kernel uses it to call it."""

    isolated: Any
    """fm_isolated"""
    table: Any
    """fm_instance: functions that request."""

    def remote(self, group: Group, kind: DataType, references: Sequence[int], n: int) -> Any:
        """Variables of a group, with so many elements, as the kernel reads or sets them: fm_remote."""

    def remote_derivative(
        self, unknowns: Sequence[int], knowns: Sequence[int], n_seed: int, n_sensitivity: int
    ) -> Any:
        """The derivative of unknowns by knowns, both value references: fm_remote."""

    def raise_failure(self) -> NoReturn:
        """Raise the error of the last request."""
        ...

    def messages(self) -> tuple[str, ...]:
        """What the FMU has logged last."""
        ...

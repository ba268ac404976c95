"""Hooks: code of an algorithm that is called inside a program and works on the value store; twins in C."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import Cause
from fmimaster.system.model import Variable


@dataclass(frozen=True, slots=True)
class Twin:
    """The same hook in C, which the kernel calls without Python: a function and its data.

    Parameters
    ----------
    name : str
        The name by which :mod:`fmimaster.run.native.lending` finds the C function and its data.
    numbers, arrays : field of the C structure → value
        The data. The kernel uses these arrays directly, so Python sees the values written by C.
    hooks : field of the C structure → hook
        Other hooks that it calls.
    """

    name: str
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    hooks: Mapping[str, Hook] = field(default_factory=dict)


_Memory = TypeVar("_Memory")


class RuleTwin(ABC, Generic[_Memory]):
    """A step-size rule in C: it holds the memory while an executor does several steps in one call.

    Attributes
    ----------
    data : Twin
        The data that the kernel uses.
    causes : tuple of Cause
        Causes of the ends of steps, by the codes that the kernel writes.
    """

    data: Twin
    causes: tuple[Cause, ...]

    @abstractmethod
    def put(self, memory: _Memory) -> None:
        """The rule continues from this memory."""

    @abstractmethod
    def take(self) -> _Memory:
        """The memory after the steps that were done."""


@dataclass(frozen=True, slots=True, eq=False)
class Partials:
    """Partial derivatives of outputs by inputs of one instance, computed by DERIVE when a hook requests them.

    Parameters
    ----------
    outputs, inputs
        Of type Float64.
    varies : shape (elements of the inputs,), bool
        Whether derivatives by that input can change. The others are computed only when all are requested.

    Attributes
    ----------
    values : shape (elements of the outputs, elements of the inputs)
        The last derivatives; NaN where an output was not finite.
    wanted : shape (1,)
        The derivatives that the next DERIVE computes: NOTHING, WHAT_VARIES or EVERYTHING. Afterwards it is NOTHING.
    """

    outputs: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    varies: NDArray[np.bool_]
    values: NDArray[np.float64] = field(init=False)
    wanted: NDArray[np.intc] = field(init=False)

    def __post_init__(self) -> None:
        """Allocate the arrays."""
        shape = sum(v.size for v in self.outputs), sum(v.size for v in self.inputs)
        object.__setattr__(self, "values", np.zeros(shape))
        object.__setattr__(self, "wanted", np.zeros(1, np.intc))


NOTHING, WHAT_VARIES, EVERYTHING = range(3)
"""The requested partial derivatives; the kernel has the same numbers."""


class Solutions(NamedTuple):
    """Statistics of the solutions of a loop by a hook."""

    variables: tuple[str, ...]
    """Of the loop: ``"instance.variable"``, in the order of names."""
    times: int
    sweeps: int
    most: int
    """Largest number of sweeps of a solution."""


class Hook(ABC):
    """Base of all hooks, which CALL calls.

    Attributes
    ----------
    name : str
        Name in listings.
    refreshed : Hook or None
        For a measure: the hook that is called if outputs are read again after it, with new inputs.
    at_instant : Hook or None
        For a measure: the hook that is called instead at the start and at events, where no time passes.
    """

    name: str
    refreshed: Hook | None = None
    at_instant: Hook | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why the results so far are less accurate than they should be."""
        return ()

    @abstractmethod
    def __call__(self, store: ValueStore) -> bool:
        """Change the value store; returns True to request another pass of the enclosing REPEAT."""

    @property
    def solutions(self) -> Solutions | None:
        """Of a loop, if the hook solves one."""
        return None

    def remembered(self) -> tuple[float, ...]:
        """Numbers for statistics and warnings that it keeps in a run."""
        return ()

    def remember(self, numbers: tuple[float, ...]) -> None:  # noqa: B027 (may have none)
        """Continue with the result of :meth:`remembered`."""

    def forget(self) -> None:  # noqa: B027 (may have none)
        """Count solutions anew."""

    def begin_anew(self) -> None:  # noqa: B027 (may remember nothing)
        """Forget all that a run has left, before the next one."""

    def partials(self, instance: int) -> Partials | None:
        """Arrays into which DERIVE writes partial derivatives of an instance; None if the hook needs none."""
        del instance
        return None

    def twin(self, store: ValueStore) -> Twin | None:
        """The same in C, for this value store; None if there is none. The results must agree bit for bit."""
        del store
        return None


@dataclass(frozen=True, slots=True)
class FunctionHook(Hook):
    """A hook that calls a Python function, and never requests another pass."""

    name: str
    function: Callable[[ValueStore], None]

    def __call__(self, store: ValueStore) -> bool:
        """Call the function."""
        self.function(store)
        return False


class Hooks(list[Hook]):
    """The hooks of a run; the number in CALL is the index in this list."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[int, int] = {}

    def number(self, hook: Hook) -> int:
        """The number of a hook; one that is new is added."""
        number = self._numbers.setdefault(id(hook), len(self))
        if number == len(self):
            self.append(hook)
        return number

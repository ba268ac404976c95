"""Hooks: code of an algorithm that works on the value store in the middle of a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.program.store import ValueStore
from fmimaster.system.model import Variable


@dataclass(frozen=True, slots=True)
class Twin:
    """The same hook in C, which the kernel calls without Python: a function and its data.

    Parameters
    ----------
    name : str
        By which :mod:`fmimaster.run.native.hooks` knows the C function and its data.
    numbers, arrays : field of the C structure → value
        The data. The kernel borrows the arrays, so that Python sees what C writes into them.
    hooks : field of the C structure → hook
        Other hooks that it calls.
    """

    name: str
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    hooks: Mapping[str, Hook] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Partials:
    """Partial derivatives of outputs by inputs of one instance, for a hook that asks for them: what DERIVE fills in.

    Parameters
    ----------
    outputs, inputs
        Of type Float64.
    varies : shape (elements of the inputs,), bool
        Whether derivatives by that input can change; the others are computed once for each time that all are asked for.

    Attributes
    ----------
    values : shape (elements of the outputs, elements of the inputs)
        The last ones; NaN where an output was not finite.
    wanted : shape (1,)
        What the next DERIVE has to compute: NOTHING, WHAT_VARIES or EVERYTHING; then it is NOTHING again.
    """

    outputs: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    varies: NDArray[np.bool_]
    values: NDArray[np.float64] = field(init=False)
    wanted: NDArray[np.intc] = field(init=False)

    def __post_init__(self) -> None:
        """Make room for them."""
        shape = sum(v.size for v in self.outputs), sum(v.size for v in self.inputs)
        object.__setattr__(self, "values", np.zeros(shape))
        object.__setattr__(self, "wanted", np.zeros(1, np.intc))


NOTHING, WHAT_VARIES, EVERYTHING = range(3)
"""What of partial derivatives is wanted; the kernel has the same numbers."""


class Solutions(NamedTuple):
    """How often a hook has solved a loop."""

    variables: tuple[str, ...]
    """Of the loop: ``"instance.variable"``, in the order of names."""
    times: int
    sweeps: int
    most: int
    """Sweeps of the solution that took most."""


class Hook(ABC):
    """What CALL calls.

    Attributes
    ----------
    name : str
        Listings show it.
    """

    name: str

    @property
    def refreshed(self) -> Hook | None:
        """Of a measure: what is called if outputs are read again after it, with new inputs; None for nothing."""
        return None

    @property
    def at_instant(self) -> Hook | None:
        """Of a measure: what is called in its place at the start and at events, where no time passes; None for nothing."""
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the results so far less accurate than they should be."""
        return ()

    @abstractmethod
    def __call__(self, store: ValueStore) -> bool:
        """Work on the value store; True to ask for another pass of the enclosing REPEAT."""

    @property
    def solutions(self) -> Solutions | None:
        """Of a loop, if the hook solves one."""
        return None

    def partials(self, instance: int) -> Partials | None:
        """Where DERIVE leaves partial derivatives of an instance; None if the hook needs none."""
        del instance
        return None

    def twin(self, store: ValueStore) -> Twin | None:
        """The same in C, for this value store; None if there is none. The results must agree bit for bit."""
        del store
        return None


@dataclass(frozen=True, slots=True)
class FunctionHook(Hook):
    """A hook that calls a Python function, and never asks for another pass."""

    name: str
    function: Callable[[ValueStore], None]

    def __call__(self, store: ValueStore) -> bool:
        """Call the function."""
        self.function(store)
        return False


class Hooks(list[Hook]):
    """The hooks of a run: CALL names one by its number, which is its place here."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        super().__init__(hooks)
        self._numbers = {id(hook): k for k, hook in enumerate(self)}

    def number(self, hook: Hook) -> int:
        """The number of a hook; one that is new is added."""
        number = self._numbers.setdefault(id(hook), len(self))
        if number == len(self):
            self.append(hook)
        return number

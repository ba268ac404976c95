"""An instance around any other: every call goes through one hook."""

from __future__ import annotations

import collections.abc
from abc import update_abstractmethods
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, get_origin, get_type_hints

from numpy.typing import NDArray

from fmimaster.fmu.instance import Instance, StepAnswer, Transfer
from fmimaster.system.model import DataType

Act = Callable[..., Any]
"""A call of an instance."""

_PUBLIC = {
    name: member
    for name, member in vars(Instance).items()
    if not (name.startswith("_") or name == "kernel_entry")  # the kernel calls the wrapper
}

_HINTS = {name: get_type_hints(member) for name, member in _PUBLIC.items() if callable(member)}

ANSWERS = {name: hints.pop("return") for name, hints in _HINTS.items()}
"""Public methods of instances → type of what they return."""

ARGUMENTS = {name: tuple(hints.values()) for name, hints in _HINTS.items()}
"""The same → types of their arguments."""

MAKERS = frozenset(
    name for name, answer in ANSWERS.items() if get_origin(answer) is collections.abc.Callable
)
"""Methods that make a function, such as a getter; the FMU is called by that function."""


def complete(kind: type, forwarded: Callable[[str], Act]) -> None:
    """Give a class the methods of :class:`Instance` that neither it nor its bases define.

    Parameters
    ----------
    forwarded
        Name of a method → the method.
    """
    for name in ANSWERS:
        if getattr(kind, name, None) in (None, _PUBLIC[name]):
            method = update_wrapper(forwarded(name), _PUBLIC[name])
            vars(method).pop("__isabstractmethod__", None)
            setattr(kind, name, method)
    update_abstractmethods(kind)


class Around(Instance):
    """Forwards everything to another instance; a subclass says in :meth:`around` what happens besides.

    A method that :class:`Instance` gets later is forwarded too. The kernel calls all of them in Python. A subclass sets its
    own attributes before it calls this constructor, which calls its hooks.

    Parameters
    ----------
    instance : Instance
        The other one; :meth:`take` replaces it.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.name, instance.model)
        self._bindings: list[Callable[[], None]] = []
        """Functions that find the methods of the present instance, and make what they have made again."""
        self.take(instance)
        self._calls = {name: self._wrapped(name, ()) for name in ANSWERS if name not in MAKERS}

    def take(self, instance: Instance) -> None:
        """Forward to this instance from now on; functions that the last one has made are made by this one too."""
        self.instance = instance
        instance.clock = lambda: self.clock()
        instance.kept_from = lambda: self.kept_from()
        instance.mark_dropped = lambda: self.mark_dropped()
        for bind in self._bindings:
            bind()

    def around(self, name: str, made: tuple[Any, ...], act: Act) -> Act:
        """What is called in place of a method, or in place of a function that a method has made.

        Parameters
        ----------
        made
            The arguments of the method that makes the function; empty for other methods.
        act
            Makes the call on the other instance, as it is then.
        """
        del name, made
        return act

    def make(self, make: Callable[[], Act]) -> Act:
        """Let the other instance make a function."""
        return make()

    def _wrapped(self, name: str, made: tuple[Any, ...]) -> Act:
        bound: list[Act] = []

        def bind() -> None:
            method = getattr(self.instance, name)
            bound[:] = [self.make(lambda: method(*made)) if name in MAKERS else method]

        bind()
        self._bindings.append(bind)
        return self.around(name, made, lambda *arguments: bound[0](*arguments))

    # Those that a class must define; the others are made below

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables of the other instance."""
        return self._wrapped("getter", (kind, references, values))

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """A step of the other instance."""
        answer: StepAnswer | None = self._calls["do_step"](time, size)
        return answer


def _forwarded(name: str) -> Act:
    def call(self: Around, *arguments: Any) -> Any:
        return self._calls[name](*arguments)

    def make(self: Around, *made: Any) -> Act:
        return self._wrapped(name, made)

    return make if name in MAKERS else call


complete(Around, _forwarded)
for _name in _PUBLIC.keys() - ANSWERS.keys():
    setattr(
        Around, _name, property(partial(lambda name, self: getattr(self.instance, name), _name))
    )

"""What a run does when an FMU is lost: when its process ends, or does not answer in time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.fmu.instance import Instance


class FaultPolicy(TypedArguments, ABC):
    """What a run does when an FMU that runs in a process of its own is lost.

    An FMU is lost if its process ends by a crash, by ``exit()`` or by its memory limit, or if it is ended because a call
    did not return before its deadline.
    """

    isolates: ClassVar[bool] = True
    """Whether FMUs must run in processes of their own."""
    marks: ClassVar[bool] = False
    """Whether rows are marked in which an instance does not take part any more."""

    @abstractmethod
    def around(self, make: Callable[[], Instance]) -> Instance:
        """The instance that a run calls.

        Parameters
        ----------
        make
            Makes an instance in a process of its own; it may be called again.
        """


@dataclass(frozen=True)
class Stop(FaultPolicy):
    """The run ends with a :class:`FmuLostError`, which has the results until then."""

    isolates: ClassVar[bool] = False
    """An FMU that runs in the process of fmimaster ends it."""

    def around(self, make: Callable[[], Instance]) -> Instance:
        """The instance itself."""
        return make()


@dataclass(frozen=True)
class Restart(FaultPolicy):
    """The FMU is started again in a new process, and the run continues.

    The new instance is brought to the last accepted point by the serialized state of the FMU, or by a replay of its
    recorded calls if the FMU cannot serialize its state.

    Parameters
    ----------
    tries : int
        Largest number of restarts of an instance without a completed step between them. After that the run ends.
    """

    tries: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.tries, Integral) or self.tries < 1:
            raise OptionError(f"Restart: tries is {self.tries!r}, expected 1 or more.")

    def around(self, make: Callable[[], Instance]) -> Instance:
        """An instance that replaces the one in it when that is lost."""
        from fmimaster.fmu.surviving import RestartedInstance  # few runs need it

        return RestartedInstance(make, self.tries)


@dataclass(frozen=True)
class Drop(FaultPolicy):
    """The FMU is left out from then on, and the run continues: its outputs keep their last values.

    A column ``INSTANCE.dropped`` of the results is 1 in each row in which the instance no longer takes part, else 0.
    """

    marks: ClassVar[bool] = True

    def around(self, make: Callable[[], Instance]) -> Instance:
        """An instance that no longer does anything when the one in it is lost."""
        from fmimaster.fmu.surviving import DroppedInstance  # few runs need it

        return DroppedInstance(make())

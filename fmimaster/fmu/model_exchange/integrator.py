"""Integrators of Model Exchange FMUs: settings, an integration in progress, and which FMU of a system gets which."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Model

Vector = NDArray[np.float64]

DEFAULT_TITLE = "Dormand-Prince 5(4)"
"""The integrator of FMUs for which none is chosen."""

DEFAULT_TOLERANCE = 1e-6
"""Relative tolerance if neither the settings, the user nor the FMU gives one."""


class Equations(Protocol):
    """The differential equations of an instance, ``dx/dt = f(t, x)``, with its inputs as they are at each time.

    Attributes
    ----------
    n : int
        Number of states.
    nominals : shape (n,)
        Nominal values of the states, above 0. They may change at events, so they are read anew at each restart.
    """

    n: int
    nominals: Vector

    @abstractmethod
    def move(self, time: float, states: Vector) -> bool:
        """Set time in s, inputs and states; returns False if the FMU discards them."""

    @abstractmethod
    def derive(self, derivatives: Vector) -> bool:
        """Get the derivatives where the FMU stands; returns False if the FMU cannot compute them there."""

    @abstractmethod
    def multiply_jacobian(self, seed: Vector, product: Vector) -> bool:
        """The matrix of the partial derivatives ``df/dx`` where the FMU stands, times ``seed``; returns False if the
        FMU cannot compute it. Only if :attr:`has_jacobian`."""

    @property
    @abstractmethod
    def has_jacobian(self) -> bool:
        """Whether the FMU provides directional derivatives of the derivatives by the states."""

    @property
    @abstractmethod
    def has_inputs(self) -> bool:
        """Whether there are continuous inputs, which may jump at communication points."""


class KernelIntegrators(Protocol):
    """The integrators of the kernel; an integration chooses its twin."""

    @abstractmethod
    def dormand_prince(self, relative: float, absolute: float) -> None:
        """Continue with these tolerances."""

    @abstractmethod
    def euler(self, step: float) -> None:
        """Continue with steps of this length in s."""

    @abstractmethod
    def cvode(self, integration: Any) -> None:
        """Continue with the memory of an integration by CVODE."""


class Integration(ABC):
    """The integration of one instance.

    Attributes
    ----------
    states : shape (n,)
        The states at the time reached.
    size : float
        Length in s of the step that it would try next; 0 if it does not know. It is saved and restored with the FMU,
        and set before a restart.
    """

    states: Vector
    size: float = 0.0
    events: float = 0.0
    """How often Event Mode was entered; set before a restart."""
    message: str = ""
    """The last message of a library that integrates."""
    judges_events: ClassVar[bool] = False
    """Whether :meth:`restart` finds out what an event has changed; otherwise ``size`` is 0 after each, but
    for step events that leave the states as they are."""

    @abstractmethod
    def restart(self, time: float, states: Vector) -> None:
        """Go on from here. The FMU stands there.

        It is called at the start of each communication step, because inputs may have jumped, and after each event and
        restored state.
        """

    @abstractmethod
    def advance(self, end: float) -> float:
        """One step, not beyond ``end``; returns the time reached.

        Afterwards the FMU stands there: the last call of :meth:`Equations.move` was for this time and :attr:`states`.

        Raises
        ------
        StuckError
            If it cannot make a step within its tolerance.
        """

    @abstractmethod
    def between(self, time: float, states: Vector) -> None:
        """States at a time inside the last step (dense output)."""

    def mark_event(self) -> None:  # noqa: B027 (may do nothing)
        """An event follows here. The FMU stands where the last step has ended, with its inputs as they were."""

    def continue_in(self, kernel: KernelIntegrators) -> None:
        """Let its twin in the kernel continue; only if its integrator has one."""
        raise NotImplementedError

    def free(self) -> None:  # noqa: B027 (may do nothing)
        """Release all resources. Never raises."""


class StuckError(Exception):
    """An integrator cannot go on; the instance adds its name and raises a CallError.

    Parameters
    ----------
    time : float
        In s.
    reason : str
        A sentence.
    """

    def __init__(self, time: float, reason: str) -> None:
        super().__init__(reason)
        self.time = time
        self.reason = reason


class Integrator(TypedArguments, ABC):
    """How the differential equations of a Model Exchange FMU are solved: settings, as a frozen dataclass."""

    remembers: ClassVar[bool] = False
    """Whether a step depends on the steps before, which are in no FMU state; a ``size`` of 0 ends that."""
    twin: ClassVar[str] = ""
    """Name of its functions in the kernel; empty if it has none: then the instance is called in Python."""

    @property
    def needs_jacobian(self) -> bool:
        """Whether only FMUs with directional derivatives of all derivatives by the states can be integrated."""
        return False

    @abstractmethod
    def start(self, equations: Equations, tolerance: float) -> Integration:
        """The integration of an instance.

        Parameters
        ----------
        tolerance
            Relative tolerance of the run; settings of the integrator come first.
        """

    @property
    @abstractmethod
    def words(self) -> str:
        """Its settings in a few words, for messages and pages: ``"Dormand-Prince 5(4), relative 1e-06"``."""


@dataclass(frozen=True)
class ErrorControlled(Integrator):
    """An integrator that chooses its steps by their errors.

    The error of a state in a step is kept below ``absolute * nominal value + relative * magnitude``.

    Parameters
    ----------
    relative : float, optional
        Relative tolerance; default: the tolerance of the run, see ``Settings.tolerance``.
    absolute : float, optional
        Tolerance in units of the nominal value of a state; default: the relative one.

    Raises
    ------
    OptionError
        If a tolerance is not above 0.
    """

    relative: float | None = None
    absolute: float | None = None

    title: ClassVar[str]
    """Its name in messages and pages."""

    def __post_init__(self) -> None:
        for name in ("relative", "absolute"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise OptionError(
                    f"{name} of {type(self).__name__} is {value:g}. Expected a number above 0."
                )

    def tolerances(self, tolerance: float) -> tuple[float, float]:
        """Relative and absolute tolerance, if this is the one of the run."""
        relative = tolerance if self.relative is None else self.relative
        return relative, relative if self.absolute is None else self.absolute

    @property
    def words(self) -> str:
        """Its settings in a few words."""
        given = ((name, getattr(self, name)) for name in ("relative", "absolute"))
        return ", ".join([self.title, *(f"{n} tolerance {v:g}" for n, v in given if v is not None)])


# Which FMU gets which integrator --------------------------------------------------------------------------------------

ALL = "*"
"""The glob of all components: any other name or glob takes precedence."""


def check_solver(setting: object) -> None:
    """Raise if a setting is neither an integrator nor a mapping of names or globs to integrators.

    Raises
    ------
    OptionError
    """
    if setting is None:
        return
    entries = setting if isinstance(setting, Mapping) else {ALL: setting}
    for name, one in entries.items():
        if isinstance(one, type) and issubclass(one, Integrator):
            raise OptionError(
                f"solver: {one.__name__} is a class. Give an object: {one.__name__}()."
            )
        if not isinstance(one, Integrator) or not isinstance(name, str):
            raise OptionError(
                f"solver: {one!r} is not a solver. Give an object such as Cvode(), its name, such as 'cvode', or a "
                "mapping of components or globs to them."
            )


def chosen_solvers(
    setting: Integrator | Mapping[str, Integrator] | None, models: Mapping[str, Model]
) -> dict[str, Integrator]:
    """Name of a component → its solver, for Model Exchange FMUs for which one is given.

    A name takes precedence over a glob, and any glob over ``*``.

    Parameters
    ----------
    models
        Name of a component → its model.

    Raises
    ------
    OptionError
        If a name or glob fits no Model Exchange FMU, two globs with different solvers fit one, or an FMU lacks the
        directional derivatives that its solver needs.
    """
    if setting is None:
        return {}
    given = setting if isinstance(setting, Mapping) else {ALL: setting}
    exchanged = [n for n, m in models.items() if m.interface is Interface.MODEL_EXCHANGE]
    for pattern in given:
        if not any(fnmatchcase(name, pattern) for name in exchanged):
            raise OptionError(_nothing_fits(pattern, exchanged, models))
    chosen = {
        name: _of_one(name, fitting)
        for name in exchanged
        if (fitting := {p: s for p, s in given.items() if fnmatchcase(name, p)})
    }
    for name, solver in chosen.items():
        if solver.needs_jacobian and models[name].n_states and not has_jacobian(models[name]):
            raise OptionError(
                f"solver: '{name}' provides no directional derivatives of its state derivatives "
                "(providesDirectionalDerivatives). Leave jacobian=directional out, or use jacobian=differences, for this "
                "component."
            )
    return chosen


def has_jacobian(model: Model) -> bool:
    """Whether an FMU provides directional derivatives of its derivatives by the states."""
    can = model.capabilities.provides_directional_derivatives
    return can and jacobian_references(model) is not None


def jacobian_references(model: Model) -> tuple[list[int], list[int]] | None:
    """Value references of the derivatives and of the states; None if one is not declared."""
    derivatives = [model.variable(name) for name in model.state_derivatives]
    states = [d and model.variable(d.derivative_of or "") for d in derivatives]
    if not (all(derivatives) and all(states)):
        return None
    return tuple([v.value_reference for v in side if v] for side in (derivatives, states))  # type: ignore[return-value]


def _of_one(name: str, fitting: Mapping[str, Integrator]) -> Integrator:
    if name in fitting:
        return fitting[name]
    (first, solver), *others = sorted(fitting.items(), key=lambda pair: pair[0] == ALL)
    for other, another in others:
        if another != solver and other != ALL:
            raise OptionError(
                f"solver: '{first}' and '{other}' both fit '{name}', with different solvers. Give '{name}' by its name."
            )
    return solver


def _nothing_fits(pattern: str, exchanged: list[str], models: Mapping[str, Model]) -> str:
    others = [name for name in models if name not in exchanged and fnmatchcase(name, pattern)]
    if not others:
        near = did_you_mean(pattern, exchanged)
        return f"solver: '{pattern}' fits no component.{near} Expected a name or a glob."
    both = any(Interface.MODEL_EXCHANGE in models[name].interfaces for name in others)
    advice = (
        "Choose its Model Exchange interface (interface='ModelExchange', --interface), or leave the solver out."
        if both
        else "Leave it out."
    )
    return (
        f"solver: '{others[0]}' is used for Co-Simulation, and has its own solver. Solvers are for Model Exchange FMUs. "
        + advice
    )


def exchange_notes(models: Mapping[str, Model], solvers: Mapping[str, Integrator]) -> Iterator[str]:
    """Notes about Model Exchange FMUs: who solves their equations, and what going back cannot restore.

    Parameters
    ----------
    models
        Name of a component → its model.
    solvers
        Name of a component → the solver that the user has chosen.
    """
    by_solver: dict[str, list[str]] = {}
    for name, model in models.items():
        if model.interface is Interface.MODEL_EXCHANGE:
            words = solvers[name].words if name in solvers else DEFAULT_TITLE
            by_solver.setdefault(words, []).append(f"'{name}'")
    for words, names in by_solver.items():
        yield f"Model Exchange: the equations of {listed(names)} are solved by {words}"
    exchanged = (n for n, m in models.items() if m.interface is Interface.MODEL_EXCHANGE)
    copied = [f"'{name}'" for name in exchanged if models[name].capabilities.copies_states]
    if copied:
        yield (
            f"{listed(copied)} cannot save the FMU state (canGetAndSetFMUState): to repeat a step, the continuous states "
            "are restored from copies; a step with an event inside cannot be repeated"
        )

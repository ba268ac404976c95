"""What an FMU declares beside its variables: interfaces, capabilities, events, power ports, layered standards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Literal, NewType

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.system.notes import there_are_more

Version = NewType("Version", str)
"""FMI version as written in the model description: ``"2.0"``, ``"3.0"``, ``"3.0.2"``."""


def standard_in_words(version: str) -> str:
    """``"FMI 3.0"``; ``"in Python"`` or ``"a table"`` for components without an FMU."""
    other = version.removeprefix("none (")
    return f"FMI {version}" if other == version else other.removesuffix(")")


class Interface(Enum):
    """Interface types of FMUs, by the names of their elements in the model description (FMI 3.0, 2.4.1)."""

    CO_SIMULATION = "CoSimulation"
    MODEL_EXCHANGE = "ModelExchange"
    SCHEDULED_EXECUTION = "ScheduledExecution"

    @classmethod
    def named(cls, name: Interface | str) -> Interface:
        """The interface of this name: ``"ModelExchange"``, ``"Model Exchange"`` or ``"model-exchange"``.

        Raises
        ------
        OptionError
            If there is none.
        """
        if isinstance(name, Interface):
            return name
        wanted = "".join(letter for letter in str(name).lower() if letter not in " -_")
        for interface in cls:
            if interface.value.lower() == wanted:
                return interface
        expected = ", ".join(f"'{i.value}'" for i in cls)
        raise OptionError(f"The interface is {name!r}. Expected {expected}.")

    @property
    def words(self) -> str:
        """The name as FMI writes it in sentences."""
        return _WORDS[self]


_WORDS = {
    Interface.CO_SIMULATION: "Co-Simulation",
    Interface.MODEL_EXCHANGE: "Model Exchange",
    Interface.SCHEDULED_EXECUTION: "Scheduled Execution",
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of an FMU with one interface; the names are those of the FMI 3.0 attributes.

    Capabilities that an interface does not have keep their defaults: for instance, only Co-Simulation has steps.
    """

    needs_execution_tool: bool = False
    can_be_instantiated_only_once_per_process: bool = False
    can_get_and_set_fmu_state: bool = False
    can_serialize_fmu_state: bool = False
    provides_directional_derivatives: bool = False
    can_handle_variable_communication_step_size: bool = False
    fixed_internal_step_size: float | None = None
    max_output_derivative_order: int = 0
    max_input_derivative_order: int = 0
    """Highest derivative of an input that can be set (FMI 2.0 with canInterpolateInputs); 0 for none."""
    provides_intermediate_update: bool = False
    might_return_early_from_do_step: bool = False
    can_return_early_after_intermediate_update: bool = False
    has_event_mode: bool = False
    needs_completed_integrator_step: bool = False
    """Whether ``CompletedIntegratorStep`` of a Model Exchange FMU is called."""
    copies_states: bool = False
    """Whether an FMU cannot save its state, so that copies of what a step changes stand in: of the continuous states in
    Model Exchange, of the time in Scheduled Execution. They cannot undo an event."""


def attribute_name(field: str) -> str:
    """The name of a field as FMI writes attributes: ``can_get_and_set_fmu_state`` → ``canGetAndSetFMUState``."""
    first, *others = field.split("_")
    return first + "".join("FMU" if word == "fmu" else word.capitalize() for word in others)


def to_json(value: Any) -> Any:
    """A dataclass, mapping, tuple or plain value as JSON; fields get keys such as ``startSeconds``."""
    if is_dataclass(value):
        return {attribute_name(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [to_json(entry) for entry in value]
    return value.value if isinstance(value, Enum) else value


@dataclass(frozen=True, slots=True)
class Experiment:
    """Start time, stop time, tolerance and step size that an FMU or a system suggests; None if not given. Times in s."""

    start_time: float | None = None
    stop_time: float | None = None
    tolerance: float | None = None
    step_size: float | None = None


class Scope(Enum):
    """What the condition of an event depends on, and which FMUs it resets."""

    PRIVATE = "private"
    """Condition and reset concern one FMU: the condition depends on its states and on time only."""
    COUPLED = "coupled"
    """The condition also depends on inputs, and so on other FMUs; the event resets one FMU only."""
    SHARED = "shared"
    """The condition depends on several FMUs, and the event resets each of them."""


@dataclass(frozen=True, slots=True)
class Indicator:
    """A continuous output that is at or below 0 while a condition of an event holds."""

    name: str
    derivative: str | None = None
    """Output that is its time derivative."""
    tolerance: float | None = None
    """Tolerance relative to the nominal value: a smaller magnitude is treated as 0. None leaves it to the importer."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A value that one member of a shared event gives to another: the left limit of an output, for an input."""

    output: str
    input: str
    member: str | None = None
    """Role of the member whose output the input takes, where there are more than two; the system binds it to a member."""


@dataclass(frozen=True, slots=True)
class Contact:
    """How impulses and forces of the importer act on the body of a member of a shared event, in which two bodies touch."""

    velocity: str
    """Output: the velocity of the body. Contacts with the same one act on the same body."""
    direction: int
    """1 or -1: the sign with which a push changes the velocity."""
    inverse_mass: str
    """Output, local variable or parameter: 1/m of the body, 0 for a wall."""
    restitution: str
    """Parameter: the part of the relative velocity that is left after an impact."""
    impulse: str
    """Input that is set with the trigger."""
    force: str
    """Continuous input."""
    parameter: str | None = None
    """Parameter that must have ``value`` for impulse and force to be used."""
    value: int | None = None


@dataclass(frozen=True, slots=True)
class EventDeclaration:
    """An event by its indicator set: it occurs when all indicators are at or below 0.

    Source: Dejaco and Benedikt (2017), private and shared state events.
    """

    name: str
    scope: Scope
    indicators: tuple[Indicator, ...]
    announce: str | None = None
    """Output by which the FMU announces that the event has occurred: a Clock, or an Integer that counts."""
    trigger: str | None = None
    """Input by which the importer makes the event occur: a Clock, or an Integer that counts."""
    payload: tuple[Payload, ...] = ()
    right_limits_without_step: bool = False
    """Whether outputs that depend directly on the trigger and the payload may be read directly after these were set,
    without a step and without Event Mode. FMI 2.0 forbids that in general (4.2.4)."""
    active: str | None = None
    """Boolean output or local variable: whether the event can occur in the present mode of the FMU. None: always."""
    contact: Contact | None = None
    """None if it is no contact, or one that a run leaves to the FMUs."""


@dataclass(frozen=True, slots=True)
class EventPolicy:
    """A parameter that selects the behaviour of the FMU at its own events."""

    parameter: str
    execute: int
    """Value for which the FMU executes its events itself."""
    announce: int
    """Value for which it stops at its events, and the importer executes them."""
    ignore: int | None = None
    """Value for which it steps over its events; only the importer triggers them."""


@dataclass(frozen=True, slots=True)
class InputPolynomial:
    """Inputs of an FMU that take the coefficients of a polynomial: ``input(t + s) = sum coefficients[k] s**k``."""

    input: str
    coefficients: tuple[str, ...]
    """Variables, lowest power first: one array, or a scalar for each power."""
    derivative: str | None = None
    """Input whose polynomial is the time derivative."""
    parameter: str | None = None
    """Parameter that must have ``value`` for the coefficients to be used."""
    value: int | None = None


@dataclass(frozen=True, slots=True)
class PowerPort:
    """An input and an output whose product is a power, as an FMU declares them."""

    name: str
    input: str
    output: str
    power: Literal["in", "out"] | None
    """Whether the power ``input * output`` enters or leaves the FMU; None if that is not declared."""
    where: str
    """Where it is declared, for messages: ``"terminal 'flange'"``."""


@dataclass(frozen=True, slots=True)
class LayeredStandard:
    """A layered standard that an FMU uses, by its manifest (FMI 3.0, 2.6)."""

    name: str
    """In reverse domain name notation: ``"org.fmi-standard.fmi-ls-bus"``."""
    version: str
    description: str
    known: bool = True
    """Whether fmimaster knows this layered standard."""
    problems: tuple[str, ...] = ()
    """Errors in the manifest, because of which the FMU runs without it."""

    @property
    def why_not_used(self) -> str:
        """The reason why the FMU runs without it, as a phrase or a few sentences; empty if it is used."""
        if not self.problems:
            return "" if self.known else "it is not known"
        more = len(self.problems) - 1
        return self.problems[0] + (f" {there_are_more(more, 'problem')}" if more else "")

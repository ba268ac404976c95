"""The model description of an FMU in one form for FMI 2.0 and 3.0, in the words of FMI 3.0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from math import prod
from typing import Any, Literal, NamedTuple, NewType

import numpy as np

from fmimaster.base.errors import OptionError
from fmimaster.system.clocks import ClockAttributes
from fmimaster.system.notes import there_are_more

Version = NewType("Version", str)
"""FMI version as written in the model description: ``"2.0"``, ``"3.0"``, ``"3.0.2"``."""


def standard_in_words(version: str) -> str:
    """``"FMI 3.0"``; ``"in Python"`` or ``"a table"`` for components without an FMU."""
    other = version.removeprefix("none (")
    return f"FMI {version}" if other == version else other.removesuffix(")")


MOST_ELEMENTS = 10_000_000
"""Most elements of all variables of an FMU together: 80 MB of floating point numbers."""


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


class DataType(Enum):
    """Types of variables, as FMI 3.0 has them; FMI 2.0 Real, Integer and Enumeration are Float64, Int32 and Int32."""

    FLOAT64 = "Float64"
    FLOAT32 = "Float32"
    INT8 = "Int8"
    UINT8 = "UInt8"
    INT16 = "Int16"
    UINT16 = "UInt16"
    INT32 = "Int32"
    UINT32 = "UInt32"
    INT64 = "Int64"
    UINT64 = "UInt64"
    BOOLEAN = "Boolean"
    STRING = "String"
    BINARY = "Binary"
    CLOCK = "Clock"

    __hash__ = (
        object.__hash__
    )  # of Enum it is written in Python, and plans of large systems are made of dictionaries

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of a value in the value store; Python objects for String and Binary."""
        return _DTYPES[self]

    @property
    def is_float(self) -> bool:
        """Whether values are floating point numbers, which can be continuous."""
        return self in (DataType.FLOAT64, DataType.FLOAT32)

    @property
    def is_integer(self) -> bool:
        """Whether values are signed or unsigned integers."""
        return self.dtype.kind in "iu"

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers or Booleans, which can be converted into each other and plotted."""
        return self.is_float or self.is_integer or self is DataType.BOOLEAN


_DTYPES: dict[DataType, np.dtype[Any]] = {
    DataType.FLOAT64: np.dtype(np.float64),
    DataType.FLOAT32: np.dtype(np.float32),
    DataType.INT8: np.dtype(np.int8),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT16: np.dtype(np.int16),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.INT32: np.dtype(np.int32),
    DataType.UINT32: np.dtype(np.uint32),
    DataType.INT64: np.dtype(np.int64),
    DataType.UINT64: np.dtype(np.uint64),
    DataType.BOOLEAN: np.dtype(np.bool_),
    DataType.STRING: np.dtype(object),
    DataType.BINARY: np.dtype(object),
    DataType.CLOCK: np.dtype(np.bool_),
}


class Causality(Enum):
    """Role of a variable (FMI 3.0, 2.4.7.4)."""

    PARAMETER = "parameter"
    CALCULATED_PARAMETER = "calculatedParameter"
    STRUCTURAL_PARAMETER = "structuralParameter"
    INPUT = "input"
    OUTPUT = "output"
    LOCAL = "local"
    INDEPENDENT = "independent"

    __hash__ = object.__hash__


class Variability(Enum):
    """When a variable can change (FMI 3.0, 2.4.7.4)."""

    CONSTANT = "constant"
    FIXED = "fixed"
    TUNABLE = "tunable"
    DISCRETE = "discrete"
    CONTINUOUS = "continuous"


class Initial(Enum):
    """How the initial value of a variable is determined (FMI 3.0, 2.4.7.5)."""

    EXACT = "exact"
    APPROX = "approx"
    CALCULATED = "calculated"


class DependencyKind(Enum):
    """Kind of the dependency of an unknown on a known variable (FMI 3.0, 2.4.8.1)."""

    DEPENDENT = "dependent"
    CONSTANT = "constant"
    FIXED = "fixed"
    TUNABLE = "tunable"
    DISCRETE = "discrete"


BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
"""In the order of exponents; FMI and SSP name attributes after them."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit by its exponents of base units: ``base value = factor * value + offset`` (FMI 3.0, 2.4.4)."""

    name: str
    exponents: tuple[int, ...] | None = None
    """Of ``BASE_UNITS``; None where the FMU names the unit without its base units."""
    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a model."""

    name: str
    value_reference: int
    type: DataType
    causality: Causality
    variability: Variability
    initial: Initial | None = None
    """None if FMI defines none: it cannot be set before Initialization Mode."""
    start: tuple[Any, ...] | None = None
    """Values in row-major order, or one value for all elements; None where the FMU gives none."""
    dimensions: tuple[int | str, ...] = ()
    """Each a number, or the name of the structural parameter that holds it; empty for a scalar."""
    shape: tuple[int, ...] = ()
    """Dimensions as numbers, with the values of structural parameters inserted."""
    unit: Unit | None = None
    relative_quantity: bool = False
    """Whether it is a difference, for which the offset of its unit is ignored."""
    nominal: float = 1.0
    """Magnitude for scaling of differences; FMI's default is 1."""
    has_nominal: bool = False
    """Whether the FMU declares it."""
    min: float | None = None
    max: float | None = None
    derivative_of: str | None = None
    """Name of the variable whose time derivative this one is."""
    enumeration: Mapping[str, int] | None = None
    """Items of an enumeration type: name → value."""
    clocks: tuple[str, ...] = ()
    """Names of the clocks of a clocked variable."""
    clock: ClockAttributes | None = None
    """When it ticks; None if it is not a clock."""
    previous: str | None = None
    """Name of the variable that has its value before the present tick; None if it is not a clocked state."""
    intermediate_update: bool = False
    """Whether it can be set or read in Intermediate Update Mode."""
    can_be_set_repeatedly: bool = True
    """Whether an input can be set more than once at a superdense instant (canHandleMultipleSetPerTimeInstant)."""
    get_in_initialization: bool = True
    """Whether it can be read in Initialization Mode; in FMI 2.0 only outputs, continuous states and their derivatives."""
    description: str = ""

    @property
    def size(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self.shape) if self.shape else 1

    @property
    def is_continuous(self) -> bool:
        """Whether it is a floating point variable that changes between events."""
        return self.type.is_float and self.variability is Variability.CONTINUOUS


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


@dataclass(frozen=True, slots=True)
class DefaultExperiment:
    """Experiment that the FMU suggests; None for values that are not given. Times in s."""

    start_time: float | None = None
    stop_time: float | None = None
    tolerance: float | None = None
    step_size: float | None = None


class Scope(Enum):
    """Whether an event belongs to one FMU or to several FMUs of a system."""

    PRIVATE = "private"
    SHARED = "shared"


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


class Residual(NamedTuple):
    """The variables for an output that a solver has to find."""

    output: str
    """The output that must be 0."""
    slope: str
    """The variable in which the solver keeps the derivative of that output by the unknown; 0 while it is not known."""


@dataclass(frozen=True)
class Model:
    """The model description of one FMU, in the terms of FMI 3.0 also for FMI 2.0.

    Dependencies map the name of each output to the names of the inputs on which it depends directly, in Step Mode and
    in Initialization Mode. Those in Initialization Mode also include other unknowns that the FMU lists, such as
    calculated parameters, and parameters as knowns. An output without declared dependencies is assumed to depend on all
    of these; its name is in ``assumed_dependencies`` or ``assumed_initial_dependencies``.
    """

    name: str
    fmi_version: Version
    model_identifier: str
    instantiation_token: str
    variables: tuple[Variable, ...]
    capabilities: Capabilities = Capabilities()
    dependencies: Mapping[str, frozenset[str]] = field(default_factory=dict)
    initial_dependencies: Mapping[str, frozenset[str]] = field(default_factory=dict)
    assumed_dependencies: frozenset[str] = frozenset()
    assumed_initial_dependencies: frozenset[str] = frozenset()
    dependency_kinds: Mapping[str, Mapping[str, DependencyKind]] = field(default_factory=dict)
    """In Step Mode, output → input → kind, for dependencies with a declared kind; the kind of all others is
    DEPENDENT."""
    initial_dependency_kinds: Mapping[str, Mapping[str, DependencyKind]] = field(
        default_factory=dict
    )
    """The same in Initialization Mode, where only the factors of CONSTANT dependencies are known."""
    replay_noise: Mapping[str, float] = field(default_factory=dict)
    """Output → relative difference between a step and its repetition from the same saved state, as far as it was
    measured (by an FMU card); outputs without difference are missing."""
    followed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Output → inputs that it follows at once in Step Mode, where FMI forbids Get after Set without a step between them:
    as far as it was measured (by an FMU card)."""
    residuals: Mapping[str, Residual] = field(default_factory=dict)
    """Outputs whose values a solver has to find; only constraints have them."""
    event_indicators: tuple[str, ...] = ()
    n_event_indicators: int = 0
    """Their number; FMI 2.0 does not name them."""
    state_derivatives: tuple[str, ...] = ()
    """Time derivatives of the continuous states, in the order of ModelStructure."""
    n_states: int = 0
    """Number of continuous states of an FMU of FMI 2.0, in which all are scalar."""
    events: tuple[EventDeclaration, ...] = ()
    event_policy: EventPolicy | None = None
    look_ahead: str | None = None
    """Output that holds the time in s to the next event as the FMU predicts it, -1 for none."""
    event_outputs: frozenset[str] = frozenset()
    """Continuous outputs that only tell of events, also of those that a run does not use."""
    input_polynomials: tuple[InputPolynomial, ...] = ()
    power_ports: tuple[PowerPort, ...] = ()
    """By its terminals and annotations; each variable exists, is scalar and continuous."""
    layered_standards: tuple[LayeredStandard, ...] = ()
    default_experiment: DefaultExperiment = DefaultExperiment()
    log_categories: tuple[str, ...] = ()
    interface: Interface = Interface.CO_SIMULATION
    """The interface that is used; the capabilities and the model identifier belong to it."""
    interfaces: tuple[Interface, ...] = (Interface.CO_SIMULATION,)
    """All interfaces that the FMU offers."""
    generation_tool: str = ""
    description: str = ""
    notes: tuple[str, ...] = ()
    """Notes about parts of the FMU that are ignored or unusual: one sentence each."""
    _by_name: dict[str, Variable] = field(init=False, repr=False, compare=False)
    _by_causality: dict[tuple[Causality, ...], tuple[Variable, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of results: thousands of instances share a model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {v.name: v for v in self.variables})

    @cached_property
    def direct_inputs(self) -> frozenset[str]:
        """Inputs on which an output depends directly in Step Mode, or is assumed to."""
        return frozenset().union(*self.dependencies.values())

    @cached_property
    def dimension_names(self) -> frozenset[str]:
        """Structural parameters by which the sizes of arrays are given."""
        return frozenset(d for v in self.variables for d in v.dimensions if isinstance(d, str))

    def variable(self, name: str) -> Variable | None:
        """The variable of that name; None if there is none."""
        return self._by_name.get(name)

    def takes_polynomial_of(self, variable: Variable) -> bool:
        """Whether this input can be given as a polynomial over a step."""
        if self.input_polynomials:
            return any(p.input == variable.name for p in self.input_polynomials)
        can = self.capabilities
        by_update = can.provides_intermediate_update and variable.intermediate_update
        return can.max_input_derivative_order > 0 or by_update

    @property
    def takes_polynomials(self) -> bool:
        """Whether inputs can be given as polynomials over a step."""
        can = self.capabilities
        return (
            can.max_input_derivative_order > 0
            or can.provides_intermediate_update
            or bool(self.input_polynomials)
        )

    @property
    def highest_order(self) -> int | None:
        """Highest time derivative of inputs that it accepts; None if it accepts whole polynomials.

        At the end of a step its inputs have the value of the polynomial up to this order about the start of the step.
        """
        if self.input_polynomials or self.capabilities.provides_intermediate_update:
            return None
        return self.capabilities.max_input_derivative_order

    @property
    def broken_manifests(self) -> str:
        """Sentences for a message that name the ignored invalid manifests with the reason; or empty."""
        broken = (s.why_not_used for s in self.layered_standards if s.problems)
        return "".join(f" Its manifest is ignored: {reason}" for reason in broken)

    def resized(self, structural: Mapping[str, int]) -> Model:
        """The model with other values of structural parameters: array variables have their new shapes."""
        starts = {
            v.name: int(v.start[0])
            for v in self.with_causality(Causality.STRUCTURAL_PARAMETER)
            if v.start
        } | dict(structural)

        def shaped(variable: Variable) -> Variable:
            shape = tuple(starts[d] if isinstance(d, str) else d for d in variable.dimensions)
            return variable if shape == variable.shape else replace(variable, shape=shape)

        return replace(self, variables=tuple(shaped(v) for v in self.variables))

    def with_causality(self, *causalities: Causality) -> tuple[Variable, ...]:
        """Variables of these causalities, in the order of the model description."""
        found = self._by_causality.get(causalities)
        if found is None:
            found = tuple(v for v in self.variables if v.causality in causalities)
            self._by_causality[causalities] = found
        return found

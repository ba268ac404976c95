"""The model description of an FMU in one form for FMI 2.0 and 3.0, in the words of FMI 3.0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.system.clocks import ClockAttributes
from fmimaster.system.declarations import (
    Capabilities,
    EventDeclaration,
    EventPolicy,
    Experiment,
    InputPolynomial,
    Interface,
    LayeredStandard,
    PowerPort,
    Version,
)

MOST_ELEMENTS = 10_000_000
"""Most elements of all variables of an FMU together: 80 MB of floating point numbers."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a component: a file, an unpacked FMU, or a member of an archive."""

    path: Path
    member: str = ""
    """Name inside the archive ``path``; empty if ``path`` itself is meant."""
    is_file: bool = True
    """Whether it is a file; otherwise ``path`` describes in words what it is."""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)


_NUMPY: Mapping[str, type] = {"Boolean": bool, "Clock": bool, "String": object, "Binary": object}
"""Name of a type → the one of NumPy, if that has another name."""


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

    # that of Enum is written in Python, and plans of large systems are made of dictionaries
    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        # attributes, because they are asked for each variable
        self.dtype: np.dtype[Any] = np.dtype(_NUMPY.get(name, name.lower()))
        """NumPy type of a value in the value store; Python objects for String and Binary."""
        self.is_float = name.startswith("Float")
        """Whether values are floating point numbers, which can be continuous."""
        self.is_integer = "Int" in name
        """Whether values are signed or unsigned integers."""
        self.is_numeric = self.is_float or self.is_integer or name == "Boolean"
        """Whether values are numbers or Booleans, which can be converted into each other and plotted."""


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
class Transformation:
    """Linear transformation of a connection: ``target = factor * source + offset``."""

    factor: float = 1.0
    offset: float = 0.0

    def then(self, other: Transformation) -> Transformation:
        """The transformation that applies this one first and then the other."""
        return Transformation(other.factor * self.factor, other.factor * self.offset + other.offset)

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return self == Transformation()


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
    left_limit_of: str | None = None
    """Name of the variable that is discontinuous at known times and whose left limit this one is: a signal of the user."""
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


def is_lossless(source: Variable, target: Variable) -> bool:
    """Whether every value of one variable is possible for the other; a Float64 may be rounded to Float32. An
    enumeration has only the values of its items."""
    a, b = source.type, target.type
    if (a, b) == (DataType.FLOAT64, DataType.FLOAT32):
        return True
    if source.enumeration and b.is_integer:
        limits = np.iinfo(b.dtype)
        return all(limits.min <= v <= limits.max for v in source.enumeration.values())
    if source.enumeration and b.is_float:
        return all(b.dtype.type(v) == v for v in source.enumeration.values())
    long_to_float = a.dtype.itemsize == 8 and a.is_integer and b.is_float
    return bool(np.can_cast(a.dtype, b.dtype, "safe")) and not long_to_float


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
    default_experiment: Experiment = Experiment()
    log_categories: tuple[str, ...] = ()
    interface: Interface = Interface.CO_SIMULATION
    """The interface that is used; the capabilities and the model identifier belong to it."""
    interfaces: tuple[Interface, ...] = (Interface.CO_SIMULATION,)
    """All interfaces that the FMU offers."""
    model_identifier: str = ""
    """Of its library; empty, as the token, for what is no FMU."""
    instantiation_token: str = ""
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
    def has_clocks(self) -> bool:
        """Whether it has clocks. Event Mode must then be used, if there is one (FMI 3.0.2, 2.3.1)."""
        return any(v.type is DataType.CLOCK for v in self.variables)

    @cached_property
    def dimension_names(self) -> frozenset[str]:
        """Structural parameters by which the sizes of arrays are given."""
        return frozenset(d for v in self.variables for d in v.dimensions if isinstance(d, str))

    @cached_property
    def tells_discrete_outputs(self) -> bool:
        """Whether outputs that are declared discrete are so: it has Event Mode, or a continuous output."""
        outputs = self.with_causality(Causality.OUTPUT)
        return self.capabilities.has_event_mode or any(v.is_continuous for v in outputs)

    @property
    def function_prefix(self) -> str:
        """Of the names of its functions: ``"fmi2"`` or ``"fmi3"``; empty for what is no FMU."""
        return f"fmi{self.fmi_version[:1]}" if self.fmi_version[:1].isdigit() else ""

    def variable(self, name: str) -> Variable | None:
        """The variable of that name; None if there is none."""
        return self._by_name.get(name)

    def takes_polynomial_of(self, variable: Variable) -> bool:
        """Whether this input can be given as a polynomial over a step."""
        if self.input_polynomials:
            return any(p.input == variable.name for p in self.input_polynomials)
        can = self.capabilities
        by_update = can.provides_intermediate_update and variable.intermediate_update
        return can.max_input_derivative_order > 0 or (by_update and not self.has_array_inputs)

    @property
    def has_array_inputs(self) -> bool:
        """Whether a floating point input is an array: then none is set inside of steps, where each has one value."""
        inputs = (v for v in self.variables if v.causality is Causality.INPUT)
        return any(v.shape and v.type is DataType.FLOAT64 for v in inputs)

    @property
    def takes_polynomials(self) -> bool:
        """Whether inputs can be given as polynomials over a step."""
        return self.highest_order is None or self.highest_order > 0

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
        if (found := self._by_causality.get(causalities)) is None:
            found = tuple(v for v in self.variables if v.causality in causalities)
            self._by_causality[causalities] = found
        return found

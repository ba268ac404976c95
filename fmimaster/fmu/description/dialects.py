"""Differences in the XML of model descriptions of FMI 2.0 and 3.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fmimaster.system.model import Causality, DataType, Variability
from fmimaster.system.xml import Element, local_name


@dataclass(frozen=True)
class Dialect:
    """The XML of one version of FMI, where it differs from the other version."""

    types: Mapping[str, DataType]
    """Name of an element → type."""
    typed: Callable[[Element], Element | None]
    """Element of a variable → the element that is named after its type; None if it has none."""
    type_definition: Callable[[Element], Element | None]
    """Element of a type definition → the element that has its attributes."""
    referred_by: str
    """Attribute by which ModelStructure refers to a variable: its value reference, or its position, counted from 1."""
    outputs: tuple[str, ...]
    initial_unknowns: tuple[str, ...]
    event_indicators: tuple[str, ...]
    state_derivatives: tuple[str, ...]
    """Paths below ModelStructure."""
    token: str
    """Attribute that identifies the model."""
    default_variability: Callable[[DataType, Causality], Variability]
    restricts_initialization: bool
    """Whether inputs have no ``initial``, so that they cannot be set before Initialization Mode, and only outputs,
    continuous states and their derivatives can be read there (FMI 2.0.4, section 4.2.4)."""

    @property
    def by_position(self) -> bool:
        """Whether variables are referred to by their positions."""
        return self.referred_by == "index"


_FMI2_TYPES = {
    "Real": DataType.FLOAT64,
    "Integer": DataType.INT32,
    "Enumeration": DataType.INT32,
    "Boolean": DataType.BOOLEAN,
    "String": DataType.STRING,
}
_FMI3_TYPES = {t.value: t for t in DataType} | {"Enumeration": DataType.INT64}
_PARAMETERS = (
    Causality.PARAMETER,
    Causality.CALCULATED_PARAMETER,
    Causality.STRUCTURAL_PARAMETER,
)


def _inner(element: Element) -> Element | None:
    for child in element:
        if local_name(child) in _FMI2_TYPES:
            return child
    return None


def _itself(element: Element) -> Element | None:
    return element if local_name(element) in _FMI3_TYPES else None


def _type_itself(element: Element) -> Element | None:
    return element


def _fmi2_variability(_: DataType, causality: Causality) -> Variability:
    # "continuous" by the standard, which it does not allow for parameters
    return Variability.FIXED if causality in _PARAMETERS else Variability.CONTINUOUS


def _fmi3_variability(kind: DataType, causality: Causality) -> Variability:
    if causality in _PARAMETERS:
        return Variability.FIXED
    return Variability.CONTINUOUS if kind.is_float else Variability.DISCRETE


FMI2 = Dialect(
    types=_FMI2_TYPES,
    typed=_inner,
    type_definition=_inner,
    referred_by="index",
    outputs=("Outputs", "Unknown"),
    initial_unknowns=("InitialUnknowns", "Unknown"),
    event_indicators=(),
    state_derivatives=("Derivatives", "Unknown"),
    token="guid",
    default_variability=_fmi2_variability,
    restricts_initialization=True,
)
FMI3 = Dialect(
    types=_FMI3_TYPES,
    typed=_itself,
    type_definition=_type_itself,
    referred_by="valueReference",
    outputs=("Output",),
    initial_unknowns=("InitialUnknown",),
    event_indicators=("EventIndicator",),
    state_derivatives=("ContinuousStateDerivative",),
    token="instantiationToken",
    default_variability=_fmi3_variability,
    restricts_initialization=False,
)
